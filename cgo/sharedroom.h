// Room for the memory that processes share.
#ifndef WEFT_SHAREDROOM_H
#define WEFT_SHAREDROOM_H

// weft_reserve_shared has libfabric reserve room for the files that it makes in /dev/shm, before it
// writes there: what fails then with ENOSPC would end the process with SIGBUS, at once or at any time
// later, when the file system is full. 0, or -1 where libfabric has no such files. It is for when the
// providers are loaded.
int weft_reserve_shared(void);

struct fid_ep;

// weft_enable_in_room is fi_enable of an endpoint that makes another of shm. The file that the
// descriptor is of is emptied before that makes its own.
int weft_enable_in_room(struct fid_ep *ep, int room);

#endif
