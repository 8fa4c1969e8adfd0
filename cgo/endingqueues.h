// Queues of endpoints that are being closed.
#ifndef WEFT_ENDINGQUEUES_H
#define WEFT_ENDINGQUEUES_H

#include "shim.h"

// weft_queue_ends has nothing that was received be read from a queue until weft_queue_has_ended: its
// endpoint is being closed. NULL is no queue. It says whether there is memory to note it.
int weft_queue_ends(const struct fid_cq *cq);
void weft_queue_has_ended(const struct fid_cq *cq);
int weft_is_ending(const struct fid_cq *cq);

#endif
