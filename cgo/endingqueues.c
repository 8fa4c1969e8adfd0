//go:build linux

#include "endingqueues.h"
#include "counted.h"

#include <pthread.h>

// To close an endpoint of ofi_rxm is to close its connections, one after the other, and to read its queue
// in between. In 2.x each message is looked up by the number of its connection: with the last of the numbers
// the table goes, and a message by a connection that the endpoint had to itself, whose number is
// gone before it is closed, ends the process.

struct ending {
	const struct fid_cq *cq;
	struct ending *next;
};

static struct ending *endings;
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int weft_queue_ends(const struct fid_cq *cq)
{
	struct ending *e = weft_take(WEFT_FOR_CONNECTIONS, sizeof *e);

	if (!e)
		return 0;
	e->cq = cq;
	pthread_mutex_lock(&lock);
	e->next = endings;
	endings = e;
	__atomic_add_fetch(&count, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return 1;
}

void weft_queue_has_ended(const struct fid_cq *cq)
{
	struct ending **place = &endings, *e;

	pthread_mutex_lock(&lock);
	while (*place && (*place)->cq != cq)
		place = &(*place)->next;
	e = *place;
	if (e) {
		*place = e->next;
		__atomic_sub_fetch(&count, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	if (e)
		weft_give(WEFT_FOR_CONNECTIONS, e);
}

int weft_is_ending(const struct fid_cq *cq)
{
	const struct ending *e;
	int is;

	// Mostly there is none, and nobody looks.
	if (!__atomic_load_n(&count, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&lock);
	for (e = endings; e && e->cq != cq;)
		e = e->next;
	is = e != NULL;
	pthread_mutex_unlock(&lock);
	return is;
}
