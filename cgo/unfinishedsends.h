// What fi_close of an endpoint of efa waits for.
#ifndef WEFT_UNFINISHEDSENDS_H
#define WEFT_UNFINISHEDSENDS_H

#include "shim.h"
#include "verbs.h"

// weft_sends_closing is for before fi_close of an endpoint, and weft_sends_closed for after it, on
// the same thread: what the device has not sent when no send of it has ended for a second fails, as
// it does when a peer is gone. is_watched says whether a queue is one that requests.c looks at.
void weft_sends_closing(struct fid *endpoint, int (*is_watched)(const struct verbs_cq *queue));
void weft_sends_closed(void);

// weft_sends_polled is for after each poll of a queue on the thread, with what that has returned.
// It returns what libfabric is to get: not 0 of what the device gives back unused.
int weft_sends_polled(struct verbs_cq *queue, int ret, int (*next)(struct verbs_cq *queue));

// weft_closing_sends says whether the thread is between the first two.
extern _Thread_local int weft_closing_sends;

#endif
