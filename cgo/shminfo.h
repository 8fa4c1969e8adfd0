// What efa of libfabric 1.17 knows of shm.
#ifndef WEFT_SHMINFO_H
#define WEFT_SHMINFO_H

// weft_find_shm_info is for when an endpoint is open that has one of shm inside.
void weft_find_shm_info(void);

// A call of fi_getinfo is between these two.
void weft_keep_shm_info(void);
void weft_restore_shm_info(void);

#endif
