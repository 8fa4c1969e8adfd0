//go:build linux

#define _GNU_SOURCE
#include "reach.h"
#include "counted.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

// region is memory that peers may reach.
struct region {
	uint64_t key;
	uint64_t base, length;
	uint64_t access;
	int begun; // weft_begun
	struct region *same; // key: where registrations are cached
};

struct weft_reach {
	pthread_rwlock_t lock;
	void *regions; // by key, of search.h
};

static int by_key(const void *a, const void *b)
{
	uint64_t x = ((const struct region *)a)->key, y = ((const struct region *)b)->key;

	return x < y ? -1 : x > y;
}

static void free_chain(void *chain)
{
	struct region *r;

	while ((r = chain)) {
		chain = r->same;
		weft_give(WEFT_FOR_ACCESSES, r);
	}
}

struct weft_reach *weft_reach_new(void)
{
	struct weft_reach *r = weft_take(WEFT_FOR_ACCESSES, sizeof *r);

	if (r)
		pthread_rwlock_init(&r->lock, NULL);
	return r;
}

void weft_reach_free(struct weft_reach *r)
{
	tdestroy(r->regions, free_chain);
	pthread_rwlock_destroy(&r->lock);
	weft_give(WEFT_FOR_ACCESSES, r);
}

int weft_reach_add(struct weft_reach *r, uint64_t key, uint64_t base, uint64_t length,
		   uint64_t access)
{
	struct region *region = weft_take(WEFT_FOR_ACCESSES, sizeof *region), **found;

	if (!region)
		return -FI_ENOMEM;
	*region = (struct region){ .key = key, .base = base, .length = length, .access = access };
	pthread_rwlock_wrlock(&r->lock);
	found = tsearch(region, &r->regions, by_key);
	if (found && *found != region) {
		region->same = (*found)->same;
		(*found)->same = region;
	}
	pthread_rwlock_unlock(&r->lock);
	if (!found)
		weft_give(WEFT_FOR_ACCESSES, region);
	return found ? 0 : -FI_ENOMEM;
}

int weft_reach_remove(struct weft_reach *r, uint64_t key, uint64_t base, uint64_t length,
		      uint64_t access)
{
	struct region wanted = { .key = key }, **at, *region = NULL;
	int begun = 0;

	pthread_rwlock_wrlock(&r->lock);
	at = tfind(&wanted, &r->regions, by_key);
	for (; at && (region = *at); at = &region->same) {
		if (region->base != base || region->length != length ||
		    region->access != access)
			continue;
		begun = region->begun;
		if (at == tfind(&wanted, &r->regions, by_key) && !region->same)
			tdelete(&wanted, &r->regions, by_key);
		else
			*at = region->same;
		break;
	}
	pthread_rwlock_unlock(&r->lock);
	weft_give(WEFT_FOR_ACCESSES, region);
	return begun;
}

static int within(const struct region *r, const struct weft_target *t, uint64_t access)
{
	return (r->access & access) == access && t->address >= r->base &&
	       t->length <= r->length && t->address - r->base <= r->length - t->length;
}

int weft_reach_begin(struct weft_reach *r, const char *targets, uint32_t count,
		     uint64_t access, int begins)
{
	struct region wanted, **found, *region;
	struct weft_target t;
	uint32_t i;

	pthread_rwlock_rdlock(&r->lock);
	for (i = 0; i < count; i++) {
		memcpy(&t, targets + i * sizeof t, sizeof t);
		wanted.key = t.key;
		found = tfind(&wanted, &r->regions, by_key);
		region = found ? *found : NULL;
		while (region && !within(region, &t, access))
			region = region->same;
		if (!region) {
			pthread_rwlock_unlock(&r->lock);
			return 0;
		}
		for (; begins && region; region = region->same)
			if (within(region, &t, access))
				__atomic_fetch_or(&region->begun, begins, __ATOMIC_RELAXED);
	}
	return 1;
}

void weft_reach_begun(struct weft_reach *r)
{
	pthread_rwlock_unlock(&r->lock);
}
