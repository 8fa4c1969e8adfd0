// Closing an endpoint that has another one inside.
#ifndef WEFT_INNERENDPOINT_H
#define WEFT_INNERENDPOINT_H

#include "shim.h"

// weft_inner_close is fi_close of a reliable endpoint of efa, for libfabric 1: it looks into
// the inner one after that was freed.
int weft_inner_close(struct fid *endpoint);

#endif
