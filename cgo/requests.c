//go:build linux

#define _GNU_SOURCE
#include "reach.h"
#include "counted.h"
#include "domainlists.h"
#include "innerendpoint.h"
#include "innerreceives.h"
#include "mapped.h"
#include "unfinishedsends.h"
#include "verbs.h"
#include "withinhost.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

// Where the device of efa does not do an access to memory itself, the provider asks its
// peer's in a packet, which looks for the memory, and, if there is none, looks into
// what it has not found. So packets are looked at here before libfabric gets them: the
// functions by which it polls the device's queue of completions are replaced, in each queue.
// The packets are those of the EFA RDM protocol, version 4 (prov/efa/docs of libfabric).

// watch is for a queue, and the queue's context.
struct watch {
	struct weft_reach *reach;
	const struct fid *object; // that has the queue
	int (*start)(struct verbs_cq *cq, struct verbs_poll_attr *attr);
	int (*next)(struct verbs_cq *cq);
	void (*end)(struct verbs_cq *cq);
	int holds;	     // the lock: libfabric has an access before it
	int failing;	     // libfabric hears of something that has failed
	int known;	     // weft_lists_polled knows enough
	ptrdiff_t to_packet; // from the number of a receive. 0: not known yet
	// Receives whose packet is elsewhere: in memory of the program. They are posted for
	// one endpoint of a queue while the queue is polled for another.
	pthread_mutex_t lock;
	void *elsewhere; // by number, of search.h
	int some;	 // are elsewhere, or were
	struct watch *following;
};

struct receive {
	uint64_t number;
	uint64_t packet;
};

// The device's own function, and all watches.
static int (*post)(struct verbs_qp *qp, struct verbs_recv *first, struct verbs_recv **bad);
static struct watch *watches;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int by_number(const void *a, const void *b)
{
	uint64_t x = ((const struct receive *)a)->number;
	uint64_t y = ((const struct receive *)b)->number;

	return x < y ? -1 : x > y;
}

// A request has at most so many (RXR_IOV_LIMIT).
#define MOST_TARGETS 4

// What a packet is, by its first byte. Those for atomic operations are in order with
// messages, so that what comes after one waits for it.
enum {
	RTS = 1, // no version has had any since the fourth, and libfabric says so
	EAGER_RTW = 70,
	LONGCTS_RTW,
	SHORT_RTR,
	LONGCTS_RTR,
	WRITE_RTA,
	FETCH_RTA,
	COMPARE_RTA,
	LONGREAD_RTW = 130,
	DC_EAGER_RTW = 139,
	DC_LONGCTS_RTW,
	DC_WRITE_RTA,
};

// examine looks at a packet that has come, and has libfabric refuse it, or do nothing of
// it, if it is for an access that must not be.
static void examine(struct watch *w, char *packet, size_t size)
{
	size_t count_at = 4, targets_at;
	uint64_t access = FI_REMOTE_WRITE;
	uint32_t count = 0, operation;
	int begins = 0, whole;

	switch (size < 4 ? 0 : (unsigned char)packet[0]) {
	case EAGER_RTW:
		targets_at = 8;
		break;
	case DC_EAGER_RTW:
		targets_at = 16;
		break;
	case SHORT_RTR:
		access = FI_REMOTE_READ;
		targets_at = 24;
		break;
	case LONGCTS_RTR:
		access = FI_REMOTE_READ;
		// Fall through.
	case LONGCTS_RTW:
	case DC_LONGCTS_RTW:
	case LONGREAD_RTW:
		targets_at = 24;
		begins = WEFT_BEGUN_LONG;
		break;
	case FETCH_RTA:
	case COMPARE_RTA:
		access = FI_REMOTE_READ;
		// Fall through.
	case WRITE_RTA:
	case DC_WRITE_RTA:
		count_at = 8;
		targets_at = 24;
		begins = WEFT_BEGUN_ATOMIC;
		if (size < targets_at)
			break;
		memcpy(&operation, packet + 16, sizeof operation);
		if (operation != FI_ATOMIC_READ)
			access |= FI_REMOTE_WRITE;
		break;
	default:
		return;
	}
	if (size >= targets_at)
		memcpy(&count, packet + count_at, sizeof count);
	whole = size >= targets_at && count <= MOST_TARGETS &&
		size >= targets_at + count * sizeof(struct weft_target);
	if (whole &&
	    weft_reach_begin(w->reach, packet + targets_at, count, access, begins)) {
		w->holds = 1;
		return;
	}
	if (whole && count_at == 8) {
		// What says who has sent it comes after the targets.
		char *after = packet + targets_at + count * sizeof(struct weft_target);

		memmove(packet + targets_at, after, packet + size - after);
		count = 0;
		memcpy(packet + count_at, &count, sizeof count);
	} else {
		// Of no flags, so that nothing else is looked for in it.
		packet[0] = RTS;
		packet[2] = packet[3] = 0;
	}
}

static void let_go(struct watch *w)
{
	if (w->failing)
		weft_lists_failed();
	w->failing = 0;
	if (w->holds)
		weft_reach_begun(w->reach);
	w->holds = 0;
}

// packet_of is where a receive has its packet, if that is known. It has one no more.
static char *packet_of(struct watch *w, uint64_t number)
{
	struct receive wanted = { .number = number }, **found, *r = NULL;
	ptrdiff_t to_packet = __atomic_load_n(&w->to_packet, __ATOMIC_RELAXED);
	uint64_t packet = to_packet > 0 ? number + (uint64_t)to_packet : 0;

	if (!__atomic_load_n(&w->some, __ATOMIC_ACQUIRE))
		return (char *)(uintptr_t)packet;
	pthread_mutex_lock(&w->lock);
	found = tfind(&wanted, &w->elsewhere, by_number);
	if (found) {
		r = *found;
		packet = r->packet;
		tdelete(&wanted, &w->elsewhere, by_number);
	}
	pthread_mutex_unlock(&w->lock);
	weft_give(WEFT_FOR_ACCESSES, r);
	return (char *)(uintptr_t)packet;
}

// look looks at the completion that the queue is at.
static void look(struct watch *w, struct verbs_cq *cq)
{
	char *packet;

	if (cq->status != VERBS_SUCCESS) {
		weft_lists_failing(w->object);
		w->failing = 1;
		return;
	}
	if (!cq->wr_id || cq->read_opcode(cq) != VERBS_RECEIVE)
		return;
	packet = packet_of(w, cq->wr_id);
	if (packet)
		examine(w, packet, cq->read_byte_len(cq));
}

static int start_and_look(struct verbs_cq *cq, struct verbs_poll_attr *attr)
{
	struct watch *w = cq->cq_context;
	int ret = w->start(cq, attr), began = ret == 0;

	if (!w->known)
		w->known = weft_lists_polled(w->object);
	if (weft_closing_sends)
		ret = weft_sends_polled(cq, ret, w->next);
	if (ret == 0)
		look(w, cq);
	else if (began)
		w->end(cq);
	return ret;
}

static int next_and_look(struct verbs_cq *cq)
{
	struct watch *w = cq->cq_context;
	int ret;

	let_go(w);
	ret = w->next(cq);
	if (weft_closing_sends)
		ret = weft_sends_polled(cq, ret, w->next);
	if (ret == 0)
		look(w, cq);
	return ret;
}

static void let_go_and_end(struct verbs_cq *cq)
{
	struct watch *w = cq->cq_context;

	let_go(w);
	w->end(cq);
}

// learn learns where the packet of a receive is: mostly as far from the receive's number,
// which is where libfabric has what it knows of it, as that of any other.
static void learn(struct watch *w, const struct verbs_recv *recv)
{
	uint64_t packet = recv->num_sge > 0 ? recv->sg_list->addr : 0;
	ptrdiff_t is = (ptrdiff_t)(packet - recv->wr_id);
	ptrdiff_t was = __atomic_load_n(&w->to_packet, __ATOMIC_RELAXED);
	struct receive *r, **found;

	if (is == was && !__atomic_load_n(&w->some, __ATOMIC_RELAXED))
		return;
	// Close behind it, and not where a program has its memory.
	if (!was && is > 0 && is < 4096) {
		__atomic_store_n(&w->to_packet, is, __ATOMIC_RELAXED);
		return;
	}
	r = weft_take(WEFT_FOR_ACCESSES, sizeof *r);
	if (!r)
		return;
	*r = (struct receive){ recv->wr_id, packet };
	pthread_mutex_lock(&w->lock);
	found = tsearch(r, &w->elsewhere, by_number);
	if (!found || *found != r) {
		if (found)
			(*found)->packet = packet;
		weft_give(WEFT_FOR_ACCESSES, r);
	}
	__atomic_store_n(&w->some, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&w->lock);
}

static int post_and_learn(struct verbs_qp *qp, struct verbs_recv *first,
			  struct verbs_recv **bad)
{
	const struct verbs_recv *r;

	if (qp->recv_cq->start_poll == start_and_look)
		for (r = first; r; r = r->next)
			learn(qp->recv_cq->cq_context, r);
	return post(qp, first, bad);
}

// queue is what find looks for: the queue of the device's that is in an object.
struct queue {
	struct weft_looks looks;
	struct verbs_cq *at, as_it_is;
	struct verbs_device context;
};

static int is_queue(struct dl_phdr_info *library, size_t size, void *argument)
{
	const struct queue *q = argument;
	const struct verbs_cq *cq = &q->as_it_is;

	(void)size;
	return weft_has(library, (void *)(uintptr_t)cq->start_poll, 1, PF_X) &&
	       weft_has(library, (void *)(uintptr_t)cq->next_poll, 1, PF_X) &&
	       weft_has(library, (void *)(uintptr_t)cq->end_poll, 1, PF_X) &&
	       weft_has(library, (void *)(uintptr_t)cq->read_opcode, 1, PF_X) &&
	       weft_has(library, (void *)(uintptr_t)cq->read_byte_len, 1, PF_X) &&
	       (q->context.post_recv == post_and_learn ||
		weft_has(library, (void *)(uintptr_t)q->context.post_recv, 1, PF_X));
}

static int find(struct queue *q, const struct fid *object)
{
	// What libfabric allocates begins with the public part.
	struct verbs_cq *const *word = (void *)object;
	struct verbs_cq *const *end =
		word + malloc_usable_size((void *)object) / sizeof *word;

	for (; word < end; word++) {
		if ((uintptr_t)*word < 4096 || (uintptr_t)*word % _Alignof(struct verbs_cq) ||
		    !weft_look(&q->looks, *word, &q->as_it_is, sizeof q->as_it_is) ||
		    q->as_it_is.cq_context || !q->as_it_is.context ||
		    !weft_look(&q->looks, q->as_it_is.context, &q->context,
			       sizeof q->context) ||
		    !dl_iterate_phdr(is_queue, q))
			continue;
		q->at = *word;
		return 1;
	}
	return 0;
}

// can is what the device can do: everything, if there is nobody to ask.
static enum weft_guarded can(struct verbs_device *device)
{
	efa_query *query = (efa_query *)dlsym(RTLD_DEFAULT, "efadv_query_device");
	struct efa_attributes a;

	memset(&a, 0, sizeof a);
	return query && query(device, &a, sizeof a) == 0 && !(a.device_caps & EFA_READS) ?
		       WEFT_READS_NOT :
		       WEFT_READS;
}

enum weft_guarded weft_reach_guard(struct weft_reach *r, struct fid *object)
{
	struct queue q;
	struct watch *w;
	int found;

	if (weft_begin_looks(&q.looks))
		return WEFT_NO_QUEUE;
	pthread_mutex_lock(&lock);
	found = find(&q, object);
	weft_lists_guarded(&q.looks, object);
	weft_end_looks(&q.looks);
	if (found && !post)
		post = q.context.post_recv;
	// Another driver of devices has a function of its own.
	found = found && (q.context.post_recv == post || q.context.post_recv == post_and_learn);
	w = found ? weft_take(WEFT_FOR_ACCESSES, sizeof *w) : NULL;
	if (w) {
		w->reach = r;
		w->object = object;
		pthread_mutex_init(&w->lock, NULL);
		w->start = q.at->start_poll;
		w->next = q.at->next_poll;
		w->end = q.at->end_poll;
		w->following = watches;
		watches = w;
		// It may be read meanwhile, though nothing has come.
		q.at->cq_context = w;
		__atomic_store_n(&q.at->end_poll, let_go_and_end, __ATOMIC_RELEASE);
		__atomic_store_n(&q.at->next_poll, next_and_look, __ATOMIC_RELEASE);
		__atomic_store_n(&q.at->start_poll, start_and_look, __ATOMIC_RELEASE);
		__atomic_store_n(&q.at->context->post_recv, post_and_learn,
				 __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return w ? can(q.at->context) : WEFT_NO_QUEUE;
}

static int is_watched(const struct verbs_cq *queue)
{
	return queue->start_poll == start_and_look;
}

static void give_receive(void *receive)
{
	weft_give(WEFT_FOR_ACCESSES, receive);
}

int weft_reach_close(struct fid *object, enum weft_how how)
{
	struct watch **at, *w, *its = NULL;
	int ret;

	// Before it is closed: afterwards its place may be another's, with another watch.
	pthread_mutex_lock(&lock);
	for (at = &watches; (w = *at);) {
		if (w->object != object) {
			at = &w->following;
			continue;
		}
		*at = w->following;
		w->following = its;
		its = w;
	}
	pthread_mutex_unlock(&lock);
	weft_sends_closing(object, is_watched);
	weft_lists_closing(object);
	if (how != WEFT_CLOSE) {
		weft_within_host_closing(object, how == WEFT_CLOSE_APART);
		ret = weft_inner_close(object);
		weft_within_host_closed(object, ret);
	} else {
		if (weft_closing_sends)
			weft_receives_closing(object);
		ret = fi_close(object);
	}
	weft_lists_closed();
	weft_sends_closed();
	while ((w = its)) {
		its = w->following;
		if (!ret) {
			tdestroy(w->elsewhere, give_receive);
			pthread_mutex_destroy(&w->lock);
			weft_give(WEFT_FOR_ACCESSES, w);
			continue;
		}
		pthread_mutex_lock(&lock);
		w->following = watches;
		watches = w;
		pthread_mutex_unlock(&lock);
	}
	return ret;
}
