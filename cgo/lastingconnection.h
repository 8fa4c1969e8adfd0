// What ofi_rxm gets for a connection, in place of the provider's endpoint: it does what that does, until that
// is closed. Answers go nowhere from then on, reads fail, and everything else is refused.
#ifndef WEFT_LASTINGCONNECTION_H
#define WEFT_LASTINGCONNECTION_H

#include "shim.h"

// weft_lasting_connection replaces an endpoint that was just opened, and gives it a number, which is
// not 0. If that fails (FI_ENOMEM) the endpoint is still open.
int weft_lasting_connection(struct fid_ep **connection, uint64_t number);

// weft_connection_number is the number of what may be a connection. 0: there is none, or it is
// closed.
uint64_t weft_connection_number(const struct fid_ep *place);

// weft_ended_queue is the queue of what is a connection that has been closed, or NULL.
const struct fid_cq *weft_ended_queue(const struct fid_ep *place);

#endif
