//go:build linux

#include "nooperation.h"
#include "afterend.h"

#include <string.h>

// tcp says of a peer's write with an immediate that was cut off, and of a write that was injected and has
// not gone, that it has failed, for no operation. ofi_rxm looks at what the operation would be, and ends
// the process. It reads an error at once when it hears that there is one, on the same thread, before it
// reads any other queue.
static _Thread_local struct {
	struct fid_cq *cq; // NULL: there is none
	struct fi_cq_err_entry error;
} next;

ssize_t weft_read_of_operations(struct fid_cq *cq, void *buf, size_t count, const struct fi_ops_cq *own)
{
	ssize_t ret;

	if (next.cq == cq)
		return -FI_EAVAIL;
	while ((ret = own->read(cq, buf, count)) == -FI_EAVAIL) {
		memset(&next.error, 0, sizeof next.error);
		if (own->readerr(cq, &next.error, 0) != 1)
			return ret;
		if (next.error.op_context) {
			next.cq = cq;
			return ret;
		}
	}
	if (ret != -FI_EAGAIN || !count || !weft_next_ended(cq, buf, &next.error))
		return ret;
	if (!next.error.err)
		return 1;
	next.cq = cq;
	return -FI_EAVAIL;
}

ssize_t weft_read_error_of_operation(struct fid_cq *cq, struct fi_cq_err_entry *error, uint64_t flags,
				     const struct fi_ops_cq *own)
{
	if (next.cq != cq)
		return own->readerr(cq, error, flags);
	// The reader knows the entry as it is in the version of the headers.
	*error = next.error;
	next.cq = NULL;
	return 1;
}
