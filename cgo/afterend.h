// Operations by connections of ofi_rxm that have ended.
#ifndef WEFT_AFTEREND_H
#define WEFT_AFTEREND_H

#include "shim.h"

// weft_end_later has a queue say, once it has nothing else, that the operation with the context has ended,
// with flags and, if that is not 0, an error: once, if it is called for each part of it. It returns 0, or a
// negative code.
ssize_t weft_end_later(const struct fid_cq *cq, void *context, uint64_t flags, int error);

// weft_next_ended takes the next of these of a queue, which is one of FI_CQ_FORMAT_DATA, and says whether
// there was one: error->err is not 0 if it has failed, and nothing in entry then.
int weft_next_ended(const struct fid_cq *cq, struct fi_cq_data_entry *entry,
		    struct fi_cq_err_entry *error);

// weft_no_more_ended is for a queue that is closed.
void weft_no_more_ended(const struct fid_cq *cq);

#endif
