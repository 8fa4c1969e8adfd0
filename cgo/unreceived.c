//go:build linux

#define _GNU_SOURCE
#include "unreceived.h"
#include "mapped.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

// A message that waits in a shared receive context refers to what the endpoint that it came for has
// of counters and queues, and what is arriving, or is to be answered, to its connections. fi_close
// frees both. A message that did not come whole, and whose connection has ended, is never looked at
// again. The layouts are those of sockets in libfabric 1.17 and 2.1; whatever is seen to differ from
// them is another version, of which nothing is known.

struct node {
	struct node *next, *prev;
};

// What of a context is looked at: the last lists, which are empty at first, and the lock
// behind them.
struct lists {
	struct node queue, arriving, receives, unreceived, endpoints;
	pthread_mutex_t lock;
};

// message is the part of one that ends with its place in the list.
struct message {
	uint64_t used, length; // used: has come
	uint64_t flags, context, source, data, tag, ignore;
	const char *completes; // within the endpoint
	struct {
		uint64_t address, length, key;
	} buffers[8];
	struct node node;
};

// What comes behind it, and in front of its text.
#define MOST_BEHIND 64

#define MOST_STEPS 100000

static int is_empty(const struct node *list)
{
	return list->next == list && list->prev == list;
}

static int are_lists(const struct lists *l)
{
	static const pthread_mutex_t free_lock;

	return is_empty(&l->queue) && is_empty(&l->arriving) && is_empty(&l->receives) &&
	       is_empty(&l->unreceived) && is_empty(&l->endpoints) &&
	       memcmp(&l->lock, &free_lock, sizeof free_lock) == 0;
}

ptrdiff_t weft_unreceived_list(struct fid_ep *shared)
{
	// What libfabric allocates begins with the public part.
	size_t size = malloc_usable_size(shared), at;
	int tries;

	// The thread of sockets holds the lock at times.
	for (tries = 0; tries < 1000; tries++) {
		for (at = sizeof *shared; at + sizeof(struct lists) <= size; at += sizeof(void *))
			if (are_lists((struct lists *)((char *)shared + at)))
				return (ptrdiff_t)at;
		sched_yield();
	}
	return 0;
}

// of_class finds what one part of an endpoint has of another, by the class that it begins with.
static const char *of_class(const struct weft_looks *looks, const void *part, size_t from,
			    size_t wanted)
{
	char *const *word = (char *const *)((const char *)part + from);
	char *const *end = (char *const *)((const char *)part + malloc_usable_size((void *)part));
	size_t class;

	for (; word < end; word++)
		if ((uintptr_t)*word >= 4096 && (uintptr_t)*word % sizeof class == 0 &&
		    weft_look(looks, *word, &class, sizeof class) && class == wanted)
			return *word;
	return NULL;
}

static struct node *after(const struct node *n)
{
	return __atomic_load_n(&n->next, __ATOMIC_ACQUIRE);
}

static struct node *before(const struct node *n)
{
	return __atomic_load_n(&n->prev, __ATOMIC_ACQUIRE);
}

// What is arriving ends with these, as far as they are looked at.
struct arriving {
	const void *endpoint; // what it has inside
	struct connection *by;
	const void *completes;
	struct node busy, node;
};

struct connection {
	int socket; // -1: it was closed
	int connected;
};

// walk finds what in the list is of the endpoint with that inside. It may be called while
// libfabric changes the list, whose lock is not known, and returns -1 if it does. What is in it
// lasts as long as the domain.
static int walk(const struct node *list, const void *inside, struct connection **by)
{
	const struct node *n, *next, *last = list;
	const struct arriving *a;
	int steps, found = 0;

	for (n = after(list), steps = 0; n != list; last = n, n = next) {
		next = after(n);
		a = (const struct arriving *)((const char *)(n + 1) - sizeof *a);
		if (__atomic_load_n(&a->endpoint, __ATOMIC_RELAXED) == inside) {
			*by = __atomic_load_n(&a->by, __ATOMIC_RELAXED);
			found = 1;
		}
		if (++steps > MOST_STEPS || before(n) != last || after(n) != next)
			return -1;
	}
	return before(list) == last ? found : -1;
}

// find is walk until the list stays as it is meanwhile.
static int find(const struct node *list, const void *inside, struct connection **by)
{
	int tries, found = -1;

	for (tries = 0; found < 0 && tries < 1000; tries++) {
		found = walk(list, inside, by);
		// Twice, in case that something has left and come back.
		if (found == 0)
			found = walk(list, inside, by);
		if (found < 0)
			sched_yield();
	}
	return found;
}

// parts are what an endpoint has inside.
static int parts(const struct fid_ep *endpoint, const char **inside, const char **receiving)
{
	struct weft_looks looks;

	if (weft_begin_looks(&looks))
		return 0;
	*inside = of_class(&looks, endpoint, sizeof *endpoint, FI_CLASS_EP);
	*receiving = *inside ? of_class(&looks, *inside, sizeof(size_t), FI_CLASS_RX_CTX) : NULL;
	weft_end_looks(&looks);
	return *receiving != NULL;
}

enum weft_arriving weft_is_arriving(struct fid_ep *shared, ptrdiff_t list, struct fid_ep *endpoint,
				    int nobody)
{
	const struct lists *l = (struct lists *)((char *)shared + list);
	const char *inside, *receiving;
	struct connection *by = NULL;
	int found;

	if (!parts(endpoint, &inside, &receiving))
		return WEFT_ARRIVES;
	found = find(&l->arriving, inside, &by);
	if (found == 0)
		return WEFT_ARRIVES_NOT;
	if (found < 0 || !by || by->socket < -1 || (by->connected & ~1))
		return WEFT_ARRIVES;
	if (by->socket == -1) {
		__atomic_store_n(&by->socket, nobody, __ATOMIC_RELEASE);
		return WEFT_ANSWERS_NOBODY;
	}
	// What waits for another to have been sent by it does not look whether it has ended.
	__atomic_store_n(&by->connected, 0, __ATOMIC_RELEASE);
	return WEFT_ARRIVES;
}

int weft_refers_to(struct fid_ep *shared, ptrdiff_t list, struct fid_ep *endpoint)
{
	struct lists *l = (struct lists *)((char *)shared + list);
	const char *inside, *its;
	const struct message *m;
	const struct node *n;
	struct connection *by;
	size_t size;
	int found = 0;

	if (!parts(endpoint, &inside, &its) || find(&l->arriving, inside, &by) != 0)
		return 1;
	size = malloc_usable_size((void *)its);
	pthread_mutex_lock(&l->lock);
	for (n = l->unreceived.next; !found && n != &l->unreceived; n = n->next) {
		m = (const struct message *)((const char *)(n + 1) - sizeof *m);
		if (m->buffers[0].length != m->length || m->used > m->length ||
		    m->buffers[0].address - (uintptr_t)(n + 1) > MOST_BEHIND)
			found = 1;
		else if (m->completes >= its && m->completes < its + size)
			found = m->used == m->length;
	}
	pthread_mutex_unlock(&l->lock);
	return found;
}
