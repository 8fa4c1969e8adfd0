//go:build linux

#define _GNU_SOURCE
#include "unfinishedsends.h"
#include "innerendpoint.h"
#include "mapped.h"

#include <dlfcn.h>
#include <malloc.h>
#include <string.h>
#include <time.h>

// fi_close of a reliable endpoint of efa polls its queue until everything that was sent has left: a
// message to a peer that is stopped, or does not read its queue, never does, and fi_close does not
// return. So weft looks at those polls: when nothing has come to its end for a second, the device is
// told that its queue pair is in error, and gives back all that it has of it.

#define PATIENCE_NS 1000000000

_Thread_local int weft_closing_sends;

static _Thread_local struct {
	struct verbs_qp *pair;
	uint64_t since;
	int given_up;
} closing;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// pair_in finds the device's queue pair that what an object has a pointer to begins with.
static struct verbs_qp *pair_in(const struct weft_looks *l, const struct fid *object,
				int (*is_watched)(const struct verbs_cq *queue))
{
	// What libfabric allocates begins with the public part.
	size_t size = malloc_usable_size((void *)object), i;
	struct verbs_qp **word, *pair, its;
	struct verbs_cq queue;

	for (i = 0; i + sizeof word <= size; i += sizeof word) {
		memcpy(&word, (const char *)object + i, sizeof word);
		if ((uintptr_t)word < 4096 || (uintptr_t)word % _Alignof(struct verbs_qp *) ||
		    !weft_look(l, word, &pair, sizeof pair) || (uintptr_t)pair < 4096 ||
		    (uintptr_t)pair % _Alignof(struct verbs_qp) || !weft_look(l, pair, &its, sizeof its) ||
		    (uintptr_t)its.send_cq % _Alignof(struct verbs_cq) ||
		    !weft_look(l, its.send_cq, &queue, sizeof queue) || queue.context != its.context ||
		    !is_watched(&queue))
			continue;
		return pair;
	}
	return NULL;
}

static struct verbs_qp *pair_of(struct fid *endpoint, int (*is_watched)(const struct verbs_cq *queue))
{
	size_t size = malloc_usable_size(endpoint), i;
	struct weft_looks l;
	struct verbs_qp *pair;
	struct fid *inner;

	if (weft_begin_looks(&l))
		return NULL;
	pair = pair_in(&l, endpoint, is_watched);
	for (i = sizeof(struct fid_ep); !pair && i + sizeof inner <= size; i += sizeof inner) {
		memcpy(&inner, (char *)endpoint + i, sizeof inner);
		if (weft_is_inner(&l, endpoint, inner, FI_CLASS_EP))
			pair = pair_in(&l, inner, is_watched);
	}
	weft_end_looks(&l);
	return pair;
}

void weft_sends_closing(struct fid *endpoint, int (*is_watched)(const struct verbs_cq *queue))
{
	closing.pair = endpoint->fclass == FI_CLASS_EP ? pair_of(endpoint, is_watched) : NULL;
	closing.since = now();
	closing.given_up = 0;
	weft_closing_sends = closing.pair != NULL;
}

void weft_sends_closed(void)
{
	weft_closing_sends = 0;
}

static void give_up(void)
{
	verbs_modify *modify = (verbs_modify *)dlsym(RTLD_DEFAULT, "ibv_modify_qp");
	struct verbs_qp_attributes to;

	memset(&to, 0, sizeof to);
	to.state = VERBS_ERROR;
	if (modify)
		modify(closing.pair, &to, VERBS_STATE);
	closing.given_up = 1;
}

int weft_sends_polled(struct verbs_cq *queue, int ret, int (*next)(struct verbs_cq *queue))
{
	if (queue != closing.pair->send_cq && queue != closing.pair->recv_cq)
		return ret;
	// The receives that it gives back are of no use to anybody.
	while (ret == 0 && closing.given_up && queue->status == VERBS_FLUSHED &&
	       queue->read_opcode(queue) == VERBS_RECEIVE)
		ret = next(queue);
	if (ret == 0 && (queue->status != VERBS_SUCCESS || queue->read_opcode(queue) != VERBS_RECEIVE))
		closing.since = now();
	else if (ret && !closing.given_up && now() - closing.since > PATIENCE_NS)
		give_up();
	return ret;
}
