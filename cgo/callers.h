// Who calls, and is called by, connected endpoints of sockets.
#ifndef WEFT_CALLERS_H
#define WEFT_CALLERS_H

#include "shim.h"

// weft_doubt_callers has what sockets gets of connections before they are open looked at before it
// does. -1: libfabric, as it was built, cannot be had to do that.
int weft_doubt_callers(void);

// weft_listens, weft_sets_name and weft_connects are fi_listen, fi_setname and fi_connect of sockets.
int weft_listens(struct fid_pep *pep);
int weft_sets_name(struct fid_pep *pep, const void *address, uint64_t length);
int weft_connects(struct fid_ep *ep, const void *address, const void *data, uint64_t length);

// weft_hang_up is for a passive endpoint that was closed.
void weft_hang_up(const struct fid_pep *pep);

#endif
