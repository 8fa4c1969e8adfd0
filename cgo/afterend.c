//go:build linux

#include "afterend.h"
#include "counted.h"

#include <pthread.h>
#include <string.h>

// When a connection has ended, ofi_rxm takes what has come by it before from its queue, all of it, as the
// number that it has is nobody's afterwards, or another connection's. But it stops where something asks for
// an answer, and there is no way to give it: a peer's atomic operation, or a message to be fetched. What is
// behind that was lost, or looked up by a number that is gone, which ended the process. So an operation by a
// connection that has ended begins, and ends in the queue.

struct ended {
	const struct fid_cq *cq;
	void *context;
	uint64_t flags;
	int error;
	struct ended *next;
};

static struct ended *first, **last = &first;
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// is_kept says whether an operation is in the list.
static int is_kept(const struct fid_cq *cq, const void *context)
{
	const struct ended *e = first;

	while (e && (e->cq != cq || e->context != context))
		e = e->next;
	return e != NULL;
}

ssize_t weft_end_later(const struct fid_cq *cq, void *context, uint64_t flags, int error)
{
	struct ended *e;

	if (!cq)
		return -FI_ENOTCONN;
	e = weft_take(WEFT_FOR_CONNECTIONS, sizeof *e);
	if (!e)
		return -FI_ENOMEM;
	e->cq = cq;
	e->context = context;
	e->flags = flags;
	e->error = error;
	pthread_mutex_lock(&lock);
	if (!is_kept(cq, context)) {
		*last = e;
		last = &e->next;
		__atomic_add_fetch(&count, 1, __ATOMIC_RELEASE);
		e = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (e)
		weft_give(WEFT_FOR_CONNECTIONS, e);
	return 0;
}

// take_out takes the first one of a queue out of the list, or returns NULL.
static struct ended *take_out(const struct fid_cq *cq)
{
	struct ended **place = &first, *e;

	// Mostly there is none, and nobody looks.
	if (!__atomic_load_n(&count, __ATOMIC_ACQUIRE))
		return NULL;
	pthread_mutex_lock(&lock);
	while (*place && (*place)->cq != cq)
		place = &(*place)->next;
	e = *place;
	if (e) {
		*place = e->next;
		if (last == &e->next)
			last = place;
		__atomic_sub_fetch(&count, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return e;
}

int weft_next_ended(const struct fid_cq *cq, struct fi_cq_data_entry *entry,
		    struct fi_cq_err_entry *error)
{
	struct ended *e = take_out(cq);

	if (!e)
		return 0;
	memset(error, 0, sizeof *error);
	if (e->error) {
		error->op_context = e->context;
		error->flags = e->flags;
		error->err = e->error;
		error->prov_errno = e->error;
	} else {
		memset(entry, 0, sizeof *entry);
		entry->op_context = e->context;
		entry->flags = e->flags;
	}
	weft_give(WEFT_FOR_CONNECTIONS, e);
	return 1;
}

void weft_no_more_ended(const struct fid_cq *cq)
{
	struct ended *e;

	while ((e = take_out(cq)))
		weft_give(WEFT_FOR_CONNECTIONS, e);
}
