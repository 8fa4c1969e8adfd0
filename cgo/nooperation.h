// Errors of a queue that are of no operation.
#ifndef WEFT_NOOPERATION_H
#define WEFT_NOOPERATION_H

#include "shim.h"

// weft_read_of_operations is fi_cq_read of a queue with the calls, for a reader that looks at the
// operation of every error: errors of none are left out. What is kept by weft_end_later is read behind
// everything else.
ssize_t weft_read_of_operations(struct fid_cq *cq, void *buf, size_t count, const struct fi_ops_cq *own);

// weft_read_error_of_operation is the fi_cq_readerr that belongs to it.
ssize_t weft_read_error_of_operation(struct fid_cq *cq, struct fi_cq_err_entry *error, uint64_t flags,
				     const struct fi_ops_cq *own);

#endif
