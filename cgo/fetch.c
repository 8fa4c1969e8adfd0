//go:build linux

#define _GNU_SOURCE
#include "fetch.h"
#include "afterend.h"
#include "lastingconnection.h"
#include "mapped.h"

#include <malloc.h>
#include <pthread.h>

// ofi_rxm fetches a long message from its sender when somebody receives it. Until then
// the message names its connection by the place of that in memory, which is empty once
// the connection has ended, and another's once there is another. So what libfabric
// fetches with is replaced, in each endpoint.

// What libfabric does with messages that are fetched, as in 1.x and 2.x. Each endpoint
// points to one of two such tables in the library's data.
struct fetching {
	int receive_access;
	int send_access;
	ssize_t (*begin)(void *message);
	ssize_t (*read)(struct fid_ep *connection, const struct iovec *iov,
			void **desc, size_t count, fi_addr_t peer,
			uint64_t address, uint64_t key, void *message);
	ssize_t (*defer)(void *entry);
};

_Thread_local uint32_t weft_lost;
static _Thread_local const void *last_lost;

// The library's table, and a copy with read in place of its own.
static struct fetching *original, guarded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// For libfabric the fetch of what is lost is under way: it keeps a place for what never
// comes, as it does for what fails.
static ssize_t read_of_living(struct fid_ep *connection, const struct iovec *iov,
			      void **desc, size_t count, fi_addr_t peer,
			      uint64_t address, uint64_t key, void *message)
{
	const struct fid_cq *queue;

	if (connection && weft_came_by(connection, message))
		return original->read(connection, iov, desc, count, peer,
				      address, key, message);
	// A receive that was there before the message ends like any other whose connection has ended.
	queue = connection ? weft_ended_queue(connection) : NULL;
	if (queue)
		return weft_end_later(queue, message, FI_RMA | FI_READ, FI_ENOTCONN);
	// It is asked for each buffer of the sender.
	if (!weft_lost || message != last_lost)
		weft_lost++;
	last_lost = message;
	return 0;
}

static int is_table(const struct dl_phdr_info *library, const struct fetching *t)
{
	return (uintptr_t)t % _Alignof(struct fetching) == 0 &&
	       weft_has(library, t, sizeof *t, PF_R) &&
	       t->receive_access == FI_READ && t->send_access == FI_REMOTE_READ &&
	       weft_has(library, t->begin, 1, PF_X) &&
	       weft_has(library, t->read, 1, PF_X) &&
	       weft_has(library, t->defer, 1, PF_X);
}

// find looks for the word of an endpoint that points to a table of the library that
// the endpoint's calls are in.
static int find(struct dl_phdr_info *library, size_t size, void *argument)
{
	void **found = argument;
	struct fid_ep *ep = *found;
	struct fetching **word = *found;
	struct fetching **end = word + malloc_usable_size(ep) / sizeof *word;

	(void)size;
	if (!weft_has(library, ep->msg->recv, 1, PF_X))
		return 0;
	while (word < end && !is_table(library, *word))
		word++;
	*found = word < end ? word : NULL;
	return 1;
}

int weft_guard_fetches(struct fid_ep *ep)
{
	// What libfabric allocates for an endpoint begins with the public part.
	void *found = ep;
	struct fetching **word;
	int ok;

	if (!ep->msg || dl_iterate_phdr(find, &found) == 0 || !found)
		return 0;
	word = found;
	pthread_mutex_lock(&lock);
	if (!original) {
		original = *word;
		guarded = *original;
		guarded.read = read_of_living;
	}
	// A second copy of libfabric in the process has a table of its own.
	ok = *word == original;
	if (ok)
		__atomic_store_n(word, &guarded, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return ok;
}

// What is shorter may be something else of the endpoint's.
#define LEAST_BUFFERS 256

int weft_send_unsegmented(struct fid_ep *ep, uint64_t eager_limit)
{
	size_t posted = __atomic_load_n(&weft_posted_length, __ATOMIC_RELAXED);
	size_t *word = (size_t *)ep, *end = word + malloc_usable_size(ep) / sizeof *word;
	size_t *found = NULL, longest_segmented;

	// libfabric 2 may have their length from a file, which only the buffers tell of.
	if (posted > WEFT_BEFORE_MESSAGES)
		eager_limit = posted - WEFT_BEFORE_MESSAGES;
	longest_segmented = 8 * eager_limit;
	if (eager_limit < LEAST_BUFFERS)
		return 0;

	for (; word + 1 < end; word++) {
		if (word[0] != eager_limit || word[1] != longest_segmented)
			continue;
		if (found)
			return 0;
		found = word + 1;
	}
	if (found)
		*found = eager_limit;
	return found != NULL;
}
