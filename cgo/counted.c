//go:build linux

#include "counted.h"

#include <malloc.h>
#include <stdlib.h>

static int64_t taken[WEFT_PURPOSES];

static void count(enum weft_purpose purpose, int64_t bytes)
{
	__atomic_add_fetch(&taken[purpose], bytes, __ATOMIC_RELAXED);
}

void *weft_take(enum weft_purpose purpose, size_t size)
{
	void *memory = calloc(1, size);

	if (memory)
		count(purpose, (int64_t)malloc_usable_size(memory));
	return memory;
}

void weft_give(enum weft_purpose purpose, void *memory)
{
	weft_keep(purpose, memory);
	free(memory);
}

void weft_keep(enum weft_purpose purpose, void *memory)
{
	if (memory)
		count(purpose, -(int64_t)malloc_usable_size(memory));
}

int64_t weft_taken(enum weft_purpose purpose)
{
	return __atomic_load_n(&taken[purpose], __ATOMIC_RELAXED);
}
