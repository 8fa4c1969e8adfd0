// What efa of libfabric 1.17 knows of shm.
#ifndef WEFT_SHMINFO_H
#define WEFT_SHMINFO_H

#include <rdma/fabric.h>

// A call of fi_getinfo is between these two, and gives what it has listed, or NULL. It is one at a
// time, and nothing else that may look at what efa knows of shm is under way meanwhile.
void weft_keep_shm_info(void);
void weft_restore_shm_info(const struct fi_info *infos);

// weft_keeps_shm_info says whether it matters that nothing is.
int weft_keeps_shm_info(void);

#endif
