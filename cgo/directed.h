// Ending receives from one peer.
#ifndef WEFT_DIRECTED_H
#define WEFT_DIRECTED_H

#include "shim.h"

// weft_cancel_directed takes an untagged receive from a peer back, for fi_cancel of libfabric 2 looks for
// its completion queue in the wrong place, and ends the process. most is how many such receives there are
// at most. 1: nothing more will be heard of it; 0: it is not there any more; -FI_ENOSYS: the endpoint has
// them in another way. Nothing else may be done with the endpoint meanwhile, but by libfabric itself.
int weft_cancel_directed(struct fid_ep *ep, uint64_t peer, void *context, uint64_t most);

#endif
