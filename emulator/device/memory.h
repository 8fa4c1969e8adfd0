/* Registered memory: keys, and access that ends with an error, not with a crash,
 * when the memory has gone. Under the engine's lock, but for memory_copy. */
#ifndef MEMORY_H
#define MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORY_REGIONS = 65535 };

struct region {
	struct ibv_mr mr;
	uint64_t iova; /* what the device calls mr.addr */
	unsigned access;
};

/* region_create returns NULL and sets errno. */
struct region *region_create(struct ibv_pd *pd, void *memory, size_t length, uint64_t iova, unsigned access);
void region_destroy(struct region *region);

/* region_find returns where [address, address+length) of the key lies, NULL if
 * the key is not valid, is of another protection domain, does not cover the
 * range, or does not have all of the access. */
void *region_find(const struct ibv_pd *pd, uint32_t key, uint64_t address, uint64_t length, unsigned access);

/* memory_copy copies within this process; false if a part of either side is not
 * there, or the target may not be written. */
bool memory_copy(void *to, const void *from, size_t length);

/* memory_present says whether all pages of the range are mapped. */
bool memory_present(const void *memory, size_t length);

#endif
