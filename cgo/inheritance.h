// What processes inherit that this one starts.
#ifndef WEFT_INHERITANCE_H
#define WEFT_INHERITANCE_H

// weft_keep_descriptors has what libfabric opens from now on closed in processes that are started. -1:
// libfabric, as it was built, cannot be had to do that.
int weft_keep_descriptors(void);

#endif
