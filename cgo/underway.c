//go:build linux

#define _GNU_SOURCE
#include "underway.h"
#include "innerendpoint.h"
#include "mapped.h"

#include <malloc.h>
#include <sched.h>
#include <string.h>

// An access of a peer that goes on in several packets has an operation in a list of the endpoint's,
// and that the descriptors of the regions it goes to. What an operation looks like differs between
// versions of libfabric: all words around its place in a list are looked at.

struct node {
	struct node *next, *prev;
};

// An operation has some hundred bytes on both sides of its place. What is beyond is another's, and
// what an operation had before is still in it: a few regions may be taken for such that are in use.
#define AROUND 1024
#define MOST_NODES 100000
#define TRIES 100

int weft_lists(struct fid_ep *endpoint, uint32_t at[WEFT_LISTS])
{
	// What libfabric allocates begins with the public part. A list is empty at first.
	size_t size = malloc_usable_size(endpoint), i;
	int lists = 0;

	for (i = sizeof *endpoint; i + sizeof(struct node) <= size && lists < WEFT_LISTS;
	     i += sizeof(void *)) {
		const struct node *n = (const struct node *)((const char *)endpoint + i);

		if (n->next == n && n->prev == n) {
			at[lists++] = (uint32_t)i;
			i += sizeof(void *);
		}
	}
	return lists;
}

// inner finds a handle of a class among the first words of another.
static struct fid *inner(struct fid *of, size_t size, size_t fclass)
{
	struct fid *word, *found = NULL;
	struct weft_looks l;
	size_t i;

	if (weft_begin_looks(&l))
		return NULL;
	for (i = sizeof *of; i + sizeof word <= size && !found; i += sizeof word)
		if (weft_look(&l, (const char *)of + i, &word, sizeof word) &&
		    weft_is_inner(&l, of, word, fclass))
			found = word;
	weft_end_looks(&l);
	return found;
}

struct fid_ep *weft_inner_endpoint(struct fid_ep *endpoint)
{
	return (struct fid_ep *)inner(&endpoint->fid, malloc_usable_size(endpoint), FI_CLASS_EP);
}

// A region may be a part of something that libfabric has allocated. What is behind it is another's, and
// one that has nothing inside may be taken for one that has.
#define REGION 192

struct fid_mr *weft_inner_region(struct fid_mr *region)
{
	return (struct fid_mr *)inner(&region->fid, REGION, FI_CLASS_MR);
}

static void note(const uintptr_t *words, size_t n, const uintptr_t *descriptors, int count,
		 uint8_t *found)
{
	size_t i;
	int low, high;

	for (i = 0; i < n; i++) {
		low = 0;
		high = count;
		while (low < high) {
			int middle = low + (high - low) / 2;

			if (descriptors[middle] < words[i])
				low = middle + 1;
			else
				high = middle;
		}
		if (low < count && descriptors[low] == words[i])
			found[low] = 1;
	}
}

// around looks at what is before and behind a place, as far as there is memory.
static void around(const struct weft_looks *l, const struct node *n, const uintptr_t *descriptors,
		   int count, uint8_t *found)
{
	uintptr_t words[AROUND / sizeof(uintptr_t)];
	size_t size;

	for (size = AROUND; size >= sizeof words[0]; size /= 2)
		if (weft_look(l, (const char *)n - size, words, size)) {
			note(words, size / sizeof words[0], descriptors, count, found);
			break;
		}
	for (size = AROUND; size >= sizeof words[0]; size /= 2)
		if (weft_look(l, n + 1, words, size)) {
			note(words, size / sizeof words[0], descriptors, count, found);
			break;
		}
}

// walk looks at a list, and says whether it was one all the time.
static int walk(const struct weft_looks *l, const struct node *list, const uintptr_t *descriptors,
		int count, uint8_t *found)
{
	struct node head, now, again;
	const struct node *n, *last = list;
	int nodes = 0;

	if (!weft_look(l, list, &head, sizeof head))
		return 0;
	for (n = head.next; n != list; last = n, n = now.next) {
		if (++nodes > MOST_NODES || !weft_look(l, n, &now, sizeof now) || now.prev != last)
			return 0;
		around(l, n, descriptors, count, found);
		if (!weft_look(l, n, &again, sizeof again) || again.next != now.next ||
		    again.prev != now.prev)
			return 0;
	}
	return weft_look(l, list, &again, sizeof again) && again.next == head.next &&
	       again.prev == last;
}

int weft_refers(struct fid_ep *endpoint, const uint32_t *at, int lists,
		const uintptr_t *descriptors, int count, uint8_t *found)
{
	struct weft_looks l;
	int i, tries, known = 1;

	if (weft_begin_looks(&l))
		return -1;
	for (i = 0; i < lists && known; i++) {
		const struct node *list = (const struct node *)((const char *)endpoint + at[i]);

		known = 0;
		for (tries = 0; tries < TRIES && !known; tries++) {
			known = walk(&l, list, descriptors, count, found);
			if (!known)
				sched_yield();
		}
	}
	weft_end_looks(&l);
	return known ? 0 : -1;
}
