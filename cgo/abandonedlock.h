// Locks that a process has left behind.
#ifndef WEFT_ABANDONEDLOCK_H
#define WEFT_ABANDONEDLOCK_H

// weft_break_locks has libfabric take a lock in shared memory that nobody holds any more. -1:
// libfabric, as it was built, takes its locks in another way.
int weft_break_locks(void);

#endif
