// Endpoints that listen before they are enabled.
#ifndef WEFT_LISTENING_H
#define WEFT_LISTENING_H

#include "shim.h"

// weft_enable_that_listens is fi_enable of an endpoint of ofi_rxm, for libfabric 2: where it cannot
// listen, it is not enabled, and can be closed.
int weft_enable_that_listens(struct fid_ep *ep);

#endif
