// Closing an endpoint that has another one inside.
#ifndef WEFT_INNERENDPOINT_H
#define WEFT_INNERENDPOINT_H

#include "mapped.h"
#include "shim.h"

// weft_is_inner says whether a word of an endpoint leads to another handle of the class, of the
// same library.
int weft_is_inner(const struct weft_looks *l, const struct fid *endpoint, struct fid *word,
		  size_t fclass);

// weft_inner_close is fi_close of a reliable endpoint of efa, for libfabric 1: it looks into
// the inner one after that was freed.
int weft_inner_close(struct fid *endpoint);

#endif
