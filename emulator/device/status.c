#include "status.h"

enum ibv_wc_status status_to_verbs(enum status status)
{
	switch (status) {
	case STATUS_OK:
		return IBV_WC_SUCCESS;
	case STATUS_FLUSHED:
		return IBV_WC_WR_FLUSH_ERR;
	case STATUS_QP_INTERNAL:
	case STATUS_UNSUPPORTED:
	case STATUS_INVALID_AH:
		return IBV_WC_LOC_QP_OP_ERR;
	case STATUS_INVALID_LKEY:
		return IBV_WC_LOC_PROT_ERR;
	case STATUS_BAD_LENGTH:
		return IBV_WC_LOC_LEN_ERR;
	case STATUS_REMOTE_ABORT:
		return IBV_WC_REM_ABORT_ERR;
	case STATUS_REMOTE_NOT_READY:
		return IBV_WC_RNR_RETRY_EXC_ERR;
	case STATUS_REMOTE_BAD_QPN:
		return IBV_WC_REM_INV_RD_REQ_ERR;
	case STATUS_REMOTE_BAD_STATUS:
		return IBV_WC_BAD_RESP_ERR;
	case STATUS_REMOTE_BAD_LENGTH:
		return IBV_WC_REM_INV_REQ_ERR;
	case STATUS_UNRESPONSIVE:
		return IBV_WC_RESP_TIMEOUT_ERR;
	default:
		return IBV_WC_GENERAL_ERR;
	}
}
