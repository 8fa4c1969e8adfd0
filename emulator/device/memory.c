#include "memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* A key is an index into this table and a generation, in 24 bits as a device's
 * work requests hold it. The key of memory that was deregistered is not valid,
 * even if the place was taken again. */
static struct {
	struct region **regions;
	uint8_t *generations;
	uint32_t used;     /* places taken at least once */
	uint32_t *freed;   /* places given back, oldest first */
	uint32_t head, tail;
} table;

static bool grow(void)
{
	if (table.regions)
		return true;
	table.regions = calloc(MEMORY_REGIONS + 1, sizeof(*table.regions));
	table.generations = calloc(MEMORY_REGIONS + 1, sizeof(*table.generations));
	table.freed = calloc(MEMORY_REGIONS + 1, sizeof(*table.freed));
	if (table.regions && table.generations && table.freed)
		return true;
	free(table.regions);
	free(table.generations);
	free(table.freed);
	table.regions = NULL;
	return false;
}

struct region *region_create(struct ibv_pd *pd, void *memory, size_t length, uint64_t iova, unsigned access)
{
	struct region *region;
	uint32_t place;

	if (!grow())
		goto no_memory;
	if (table.used < MEMORY_REGIONS)
		place = ++table.used;
	else if (table.head != table.tail)
		place = table.freed[table.head++ % (MEMORY_REGIONS + 1)];
	else
		goto no_memory;
	region = calloc(1, sizeof(*region));
	if (!region) {
		table.freed[table.tail++ % (MEMORY_REGIONS + 1)] = place;
		goto no_memory;
	}
	region->mr.context = pd->context;
	region->mr.pd = pd;
	region->mr.addr = memory;
	region->mr.length = length;
	region->mr.handle = place;
	region->mr.lkey = region->mr.rkey = place | (uint32_t)table.generations[place] << 16;
	region->iova = iova;
	region->access = access;
	table.regions[place] = region;
	return region;
no_memory:
	errno = ENOMEM;
	return NULL;
}

void region_destroy(struct region *region)
{
	uint32_t place = region->mr.handle;

	table.regions[place] = NULL;
	table.generations[place]++;
	table.freed[table.tail++ % (MEMORY_REGIONS + 1)] = place;
	free(region);
}

void *region_find(const struct ibv_pd *pd, uint32_t key, uint64_t address, uint64_t length, unsigned access)
{
	uint32_t place = key & 0xffff;
	const struct region *region;

	if (!table.regions || place > table.used)
		return NULL;
	region = table.regions[place];
	if (!region || region->mr.lkey != key || region->mr.pd != pd || (region->access & access) != access)
		return NULL;
	if (address < region->iova || length > region->mr.length || address - region->iova > region->mr.length - length)
		return NULL;
	return (char *)region->mr.addr + (address - region->iova);
}

bool memory_present(const void *memory, size_t length)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char vector[4096];
	const size_t step = sizeof(vector);
	uintptr_t at = (uintptr_t)memory & ~(page - 1), end;

	if (__builtin_add_overflow((uintptr_t)memory, length, &end))
		return false;
	while (at < end) {
		size_t part = end - at < page * step ? end - at : page * step;

		if (mincore((void *)at, part, vector))
			return errno != ENOMEM;
		at += part;
	}
	return true;
}

/* by_probing is for sandboxes that forbid process_vm_readv. It cannot see that
 * memory may not be written. */
static bool by_probing(void *to, const void *from, size_t length)
{
	if (!memory_present(to, length) || !memory_present(from, length))
		return false;
	memcpy(to, from, length);
	return true;
}

bool memory_copy(void *to, const void *from, size_t length)
{
	static atomic_bool forbidden;

	while (length) {
		struct iovec local = {to, length};
		struct iovec remote = {(void *)(uintptr_t)from, length};
		ssize_t copied;

		if (atomic_load_explicit(&forbidden, memory_order_relaxed))
			return by_probing(to, from, length);
		/* The kernel checks every page of both sides. */
		copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
		if (copied < 0 && (errno == EPERM || errno == ENOSYS)) {
			atomic_store(&forbidden, true);
			continue;
		}
		if (copied <= 0)
			return false;
		to = (char *)to + copied;
		from = (const char *)from + copied;
		length -= (size_t)copied;
	}
	return true;
}
