/* The statuses of EFA devices: what ibv_wc_read_vendor_err returns. */
#ifndef STATUS_H
#define STATUS_H

#include <infiniband/verbs.h>
#include <stdint.h>

enum status {
	STATUS_OK = 0,
	STATUS_FLUSHED = 1,
	STATUS_QP_INTERNAL = 2,
	STATUS_UNSUPPORTED = 3,
	STATUS_INVALID_AH = 4,
	STATUS_INVALID_LKEY = 5,
	STATUS_BAD_LENGTH = 6,
	STATUS_REMOTE_BAD_ADDRESS = 7,
	STATUS_REMOTE_ABORT = 8,
	STATUS_REMOTE_BAD_QPN = 9,
	STATUS_REMOTE_NOT_READY = 10,
	STATUS_REMOTE_BAD_LENGTH = 11,
	STATUS_REMOTE_BAD_STATUS = 12,
	STATUS_UNRESPONSIVE = 13,
	STATUS_REMOTE_UNKNOWN_PEER = 14,
	STATUS_COUNT
};

/* status_to_verbs is the verbs status that rdma-core makes of a device's. */
enum ibv_wc_status status_to_verbs(enum status status);

#endif
