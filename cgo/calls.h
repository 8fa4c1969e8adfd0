// What libfabric calls elsewhere.
#ifndef WEFT_CALLS_H
#define WEFT_CALLS_H

#include <stdint.h>

struct weft_call {
	const char *name;
	void (*ours)(void); // in the place of that function
};

// weft_replace_calls has libfabric call other functions than those of these names, and returns how
// many it has calls of.
int weft_replace_calls(const struct weft_call *calls, int count);

// weft_inode says which file a descriptor is of, by which whoever is called knows it again; 0: of none.
uint64_t weft_inode(int fd);

#endif
