// Ending receives from one peer.
#ifndef WEFT_DIRECTED_H
#define WEFT_DIRECTED_H

#include "shim.h"

// weft_refusal is a receive that libfabric has no more, and why it did not take it again.
struct weft_refusal {
	void *context;
	uint64_t error;
};

// weft_ended is what has become of receives: how many of those that were to end have, of which nothing
// more will be heard, or below 0 why none has; and how many others were refused.
struct weft_ended {
	int64_t count;
	uint64_t refusals;
};

// weft_cancel_directed takes the untagged receive from a peer back that has the context, or all of the
// peer's if that is NULL, for fi_cancel of libfabric 2 looks for its completion queue in the wrong place,
// and ends the process. most is how many such receives there are at most, and for how many refusals there
// is room. -FI_ENOSYS: the endpoint has them in another way. Nothing else may be done with the endpoint
// meanwhile, but by libfabric itself.
struct weft_ended weft_cancel_directed(struct fid_ep *ep, uint64_t peer, const void *context, uint64_t most,
				       struct weft_refusal *refusals);

#endif
