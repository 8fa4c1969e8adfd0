// What an endpoint has in lists of its domain.
#ifndef WEFT_DOMAINLISTS_H
#define WEFT_DOMAINLISTS_H

#include "shim.h"

struct weft_looks; // of mapped.h

// weft_empty_lists has every endpoint of efa that weft_lists_closing is called for out of the lists of
// its domain before it is freed. -1: libfabric, as it was built, cannot be had to do that.
int weft_empty_lists(void);

// weft_lists_closing is for before fi_close of an endpoint, and weft_lists_closed for after it, on the
// same thread.
void weft_lists_closing(struct fid *endpoint);
void weft_lists_closed(void);

// weft_lists_guarded is for an object of a domain, of which the first is known before anything is enabled. It
// is called by one thread at a time.
void weft_lists_guarded(const struct weft_looks *l, const struct fid *object);

// weft_lists_polled is for when libfabric polls the device for an object, which it does with its lock. It says
// whether it need not be called for the object again.
int weft_lists_polled(const struct fid *object);

// weft_lists_failing is for before libfabric hears that something has failed which it has for an object, and
// weft_lists_failed for after it, on the same thread, with its lock.
void weft_lists_failing(const struct fid *object);
void weft_lists_failed(void);

#endif
