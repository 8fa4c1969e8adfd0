// What an endpoint of efa does within its host, by an endpoint of shm that it has inside.
#ifndef WEFT_WITHINHOST_H
#define WEFT_WITHINHOST_H

#include "shim.h"

// weft_within_host has the endpoint of shm inside a reliable endpoint of efa say which
// operations have failed. It is called before anything else is done with the endpoint, for
// libfabric 1.17. Otherwise what a peer of the host does not take, because it was killed,
// or what cannot be read of its memory, is under way for ever, and so is fi_close. -FI_ENOMEM;
// -FI_ENOSYS: there is no endpoint of shm inside that is known.
int weft_within_host(struct fid_ep *endpoint);

// weft_within_host_closing has what is under way within the host fail when nothing of it has come
// to its end for a second and it is to processes that are no more, or for half a minute. It is
// called before fi_close. apart: it fails at once, and shm is not asked for anything any more,
// which may look into the memory of endpoints of the process that are closed.
void weft_within_host_closing(struct fid *endpoint, int apart);
// weft_within_host_closed is called after fi_close, with what that has returned.
void weft_within_host_closed(struct fid *endpoint, int ret);

#endif
