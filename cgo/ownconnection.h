// Whose a connection is.
#ifndef WEFT_OWNCONNECTION_H
#define WEFT_OWNCONNECTION_H

#include "shim.h"

// weft_owns_connection says of what a set of epoll has for a connection of tcp or net whether it is of
// the endpoint.
int weft_owns_connection(struct fid_ep *ep, uintptr_t of);

#endif
