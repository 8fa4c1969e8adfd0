// What comes from peers that are in no vector.
#ifndef WEFT_STRANGERS_H
#define WEFT_STRANGERS_H

#include "shim.h"

// What such a queue has as the source of what a stranger has sent, in place of FI_ADDR_NOTAVAIL.
#define WEFT_STRANGER ((fi_addr_t)-2)

// weft_name_strangers has a queue of shm of libfabric 1.17 say so, and weft_refuse_strangers has
// receives of an endpoint of that provider that are for one peer not get it. The first is called
// before anything is bound to the queue, the second once the endpoint is enabled. -FI_ENOSYS: it is
// made in another way.
int weft_name_strangers(struct fid_cq *queue);
int weft_refuse_strangers(struct fid_ep *endpoint);

#endif
