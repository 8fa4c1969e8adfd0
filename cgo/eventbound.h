// A bound for what peers can put into an event queue.
#ifndef WEFT_EVENTBOUND_H
#define WEFT_EVENTBOUND_H

#include "shim.h"

// Has an event queue that was just opened keep so many errors that were not read, and drop
// those that come then.
int weft_eq_bound(struct fid_eq *eq, uint64_t most);
// An error was read.
void weft_eq_error_read(struct fid_eq *eq);
// How many were dropped.
uint64_t weft_eq_dropped(const struct fid_eq *eq);
int weft_eq_close(struct fid_eq *eq);

#endif
