/* Completion channels: a descriptor that can be read once for each announced
 * queue. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "completion.h"
#include "engine.h"
#include "export.h"

struct channel {
	struct ibv_comp_channel verbs;
	struct completion_queue *first, *last;
};

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct channel *channel = calloc(1, sizeof(*channel));

	if (!channel) {
		errno = ENOMEM;
		return NULL;
	}
	channel->verbs.context = context;
	channel->verbs.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (channel->verbs.fd < 0) {
		free(channel);
		return NULL;
	}
	return &channel->verbs;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *verbs)
{
	int used;

	engine_lock();
	used = verbs->refcnt;
	engine_unlock();
	if (used)
		return EBUSY;
	close(verbs->fd);
	free(verbs);
	return 0;
}

void channel_announce(struct completion_queue *cq)
{
	struct channel *channel = (struct channel *)cq->cq.channel;
	uint64_t one = 1;

	if (!channel || cq->announced)
		return;
	cq->announced = true;
	cq->next_announced = NULL;
	if (channel->last)
		channel->last->next_announced = cq;
	else
		channel->first = cq;
	channel->last = cq;
	if (write(channel->verbs.fd, &one, sizeof(one)) < 0)
		return; /* cannot be: it would take 2^64 queues */
}

static struct completion_queue *pop(struct channel *channel)
{
	struct completion_queue *cq = channel->first;

	if (!cq)
		return NULL;
	channel->first = cq->next_announced;
	if (!channel->first)
		channel->last = NULL;
	cq->announced = false;
	return cq;
}

void channel_forget(struct completion_queue *cq)
{
	struct channel *channel = (struct channel *)cq->cq.channel;
	struct completion_queue *first, *other;

	if (!channel || !cq->announced)
		return;
	/* Its count stays in the descriptor; who reads it finds nothing and waits
	 * on. */
	first = channel->first;
	channel->first = channel->last = NULL;
	while (first) {
		other = first;
		first = first->next_announced;
		other->announced = false;
		if (other == cq)
			continue;
		other->announced = true;
		other->next_announced = NULL;
		if (channel->last)
			channel->last->next_announced = other;
		else
			channel->first = other;
		channel->last = other;
	}
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *verbs, struct ibv_cq **cq, void **cq_context)
{
	struct completion_queue *announced;
	uint64_t count;

	do {
		if (read(verbs->fd, &count, sizeof(count)) < 0)
			return -1;
		engine_lock();
		announced = pop((struct channel *)verbs);
		if (announced)
			announced->events++;
		engine_unlock();
	} while (!announced);
	*cq = &announced->cq;
	*cq_context = announced->cq.cq_context;
	return 0;
}
