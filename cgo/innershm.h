// The endpoint of shm that one of efa of libfabric 1.17 has inside.
#ifndef WEFT_INNERSHM_H
#define WEFT_INNERSHM_H

#include "shim.h"

// weft_inner_shm finds it, and its queue. NULL: it is not known where they are.
struct fid_ep *weft_inner_shm(struct fid_ep *endpoint, struct fid_cq **queue);
// weft_inner_vector finds its vector, once that was bound.
struct fid_av *weft_inner_vector(struct fid *endpoint, struct fid_ep *shm);

// weft_shm_is_gone says whether the process of a peer of shm is no more: its file is, or names one
// that has ended. 0 is also that it is not known.
int weft_shm_is_gone(struct fid_av *vector, fi_addr_t peer);

#endif
