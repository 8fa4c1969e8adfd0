// What of peers' accesses is under way in an endpoint of efa, or of shm.
#ifndef WEFT_UNDERWAY_H
#define WEFT_UNDERWAY_H

#include "shim.h"

// How many lists of an endpoint are looked at.
#define WEFT_LISTS 64

// weft_lists finds where an endpoint of efa that was not enabled yet has its lists, and returns how
// many there are.
int weft_lists(struct fid_ep *endpoint, uint32_t at[WEFT_LISTS]);

// weft_inner_endpoint and weft_inner_region are what an endpoint and a region of efa have of shm inside,
// for within the host, or NULL.
struct fid_ep *weft_inner_endpoint(struct fid_ep *endpoint);
struct fid_mr *weft_inner_region(struct fid_mr *region);

// weft_refers notes in found which regions, by their descriptors, in ascending order, something in
// those lists of the endpoint refers to, or may. Libfabric may change the lists meanwhile. -1: it
// is not known.
int weft_refers(struct fid_ep *endpoint, const uint32_t *at, int lists,
		const uintptr_t *descriptors, int count, uint8_t *found);

#endif
