// What memory there is, before it is looked into.
#ifndef WEFT_MAPPED_H
#define WEFT_MAPPED_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

// weft_has says whether a library has all of the memory, with the flags (PF_X).
int weft_has(const struct dl_phdr_info *library, const void *begin, size_t size,
	     uint32_t flags);

// weft_is_code says whether a library has the code.
int weft_is_code(const void *code);

// weft_looks is a means to look at memory that may not be there. It has a pipe where the kernel does not
// allow it otherwise. -1: there is none.
struct weft_looks {
	int pipe[2];
};

int weft_begin_looks(struct weft_looks *l);
// weft_look copies memory, and says whether it was there.
int weft_look(const struct weft_looks *l, const void *from, void *to, size_t size);
void weft_end_looks(struct weft_looks *l);

#endif
