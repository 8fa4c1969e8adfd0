//go:build linux

#include "withinhost.h"
#include "counted.h"
#include "innershm.h"
#include "strangers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// In libfabric 1.17, an endpoint of efa has an endpoint of shm inside, and a queue of that, by which
// it reaches the processes of its host. It counts what it has under way there, and fi_close reads the
// queue until that is nothing. But
//   - what a peer that was killed has not taken never completes;
//   - shm copies most of what is read or written when that is posted, and where it cannot,
//     because the peer has unmapped the memory or has ended, it says in the queue that something
//     has failed, and not what;
//   - of whatever fails, efa looks into the entry that fi_cq_readfrom was to fill for what it
//     was, and there is nothing in it;
//   - writes are not counted, and yet one that fails is counted as done: there is less than none
//     under way then, and fi_close does not return.
// So shm gets contexts of weft's, and efa reads what weft makes of the queue's entries.

// What efa has under way at a time: as much as its queues take, in either direction.
#define MOST 4096
// How long nothing comes to its end until all is given up: to processes that are no more, and to
// others, which may be stopped and take what is still there when they go on.
#define PATIENCE_NS 1000000000ull
#define LONG_PATIENCE_NS (30 * PATIENCE_NS)
// How many entries are read at once to find one that efa has to know of.
#define LOOKS 64
// The number of efa for what fails in shm. Some of shm's own are those by which efa sends anew.
#define SHM_FAILED 4122

struct under_way {
	void *context; // efa's
	struct under_way *next, **place; // in one of the lists
	uint64_t flags;
	fi_addr_t peer;
	int err;
	int posted; // shm has it
	int told;   // efa was told that it has failed
};

// An entry of the queue as efa is to have it.
struct entry {
	struct fi_cq_data_entry data;
	fi_addr_t source;
	int failed;
	struct fi_cq_err_entry error;
};

// A table of calls of weft's has this before it.
struct table {
	struct within_host *of;
	void *own;
};

struct within_host {
	struct fid *endpoint;
	struct within_host *next;
	pthread_mutex_t lock;
	struct fid_ep *shm;
	struct fid_cq *queue;
	struct fid_av *vector; // NULL: it is not known
	struct table *msg, *rma, *cq;
	struct under_way all[MOST];
	size_t made; // of them
	struct under_way *unused, *under_way, *failed, *lost;
	// Entries that were read and that efa has not had.
	struct entry read[MOST];
	size_t first_read, past_read;
	struct fi_cq_err_entry error; // of what efa was told of last
	int error_unread;
	int given_up, apart;
	int closing;
	uint64_t since, looked; // when something came to its end, and when that was looked at
};

static struct within_host *hosts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct table *of(void *calls)
{
	return (struct table *)calls - 1;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void move(struct under_way *u, struct under_way **list)
{
	if (u->place)
		*u->place = u->next;
	if (u->next)
		u->next->place = u->place;
	u->next = *list;
	u->place = list;
	if (u->next)
		u->next->place = &u->next;
	*list = u;
}

static struct under_way *begin(struct within_host *w, void *context, fi_addr_t peer,
			       uint64_t flags)
{
	struct under_way *u = w->unused;

	if (!u && w->made == MOST)
		return NULL;
	if (!u)
		u = &w->all[w->made++];
	move(u, &w->under_way);
	u->context = context;
	u->peer = peer;
	u->flags = flags;
	u->posted = u->told = 0;
	return u;
}

static void fail(struct within_host *w, struct under_way *u, int err)
{
	// It may be of either sign.
	u->err = err ? abs(err) : FI_EIO;
	move(u, &w->failed);
}

// whose says which one the context of an entry is. NULL: it is none of weft's.
static struct under_way *whose(struct within_host *w, void *context)
{
	struct under_way *u = context;

	return u >= w->all && u < w->all + MOST ? u : NULL;
}

// unposted is what becomes of an operation that shm is not asked for. 1: it is.
static ssize_t unposted(struct within_host *w, struct under_way *u)
{
	if (!u)
		return -FI_EAGAIN;
	if (!w->given_up)
		return 1;
	if (u->flags & FI_WRITE) {
		move(u, &w->unused);
		return -FI_EAGAIN;
	}
	// fi_close would try it again and again.
	fail(w, u, FI_ECANCELED);
	return 0;
}

static ssize_t posted(struct within_host *w, struct under_way *u, ssize_t ret)
{
	u->posted = !ret;
	if (ret)
		move(u, &w->unused);
	return ret;
}

static ssize_t send_within(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	const struct fi_ops_msg *own = of(ep->msg)->own;
	struct within_host *w = of(ep->msg)->of;
	struct fi_msg its = *msg;
	struct under_way *u;
	ssize_t ret;

	pthread_mutex_lock(&w->lock);
	its.context = u = begin(w, msg->context, msg->addr, FI_SEND | FI_MSG);
	ret = unposted(w, u);
	if (ret == 1)
		ret = posted(w, u, own->sendmsg(ep, &its, flags));
	pthread_mutex_unlock(&w->lock);
	return ret;
}

static ssize_t inject_within(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t peer)
{
	const struct fi_ops_msg *own = of(ep->msg)->own;
	struct within_host *w = of(ep->msg)->of;

	// Nobody hears of one that fails.
	return __atomic_load_n(&w->given_up, __ATOMIC_RELAXED) ? 0 : own->inject(ep, buf, len, peer);
}

// take reads an entry of the queue. assumed is what an error is of, if shm does not say. 0: there
// was one that efa does not have to know of.
static ssize_t take(struct within_host *w, struct entry *e, struct under_way *assumed)
{
	const struct fi_ops_cq *own = w->cq->own;
	ssize_t ret = own->readfrom(w->queue, &e->data, 1, &e->source);
	struct fi_cq_err_entry *error = &e->error;
	struct under_way *u;

	if (ret == 1) {
		e->failed = 0;
		if (e->source == WEFT_STRANGER)
			e->source = FI_ADDR_NOTAVAIL;
		u = whose(w, e->data.op_context);
		if (!u)
			return 1;
		e->data.op_context = u->context;
		u->posted = 0;
		move(u, &w->unused);
		w->since = w->closing ? now() : 0;
		return !u->told;
	}
	if (ret != -FI_EAVAIL)
		return ret;
	memset(error, 0, sizeof *error);
	if (own->readerr(w->queue, error, 0) != 1)
		return 0;
	u = whose(w, error->op_context);
	// What a peer does here fails without a context, too.
	if (!error->op_context && !(error->flags & (FI_REMOTE_READ | FI_REMOTE_WRITE)))
		u = assumed;
	if (u) {
		u->posted = 0;
		if (u->told) {
			move(u, &w->unused);
			return 0;
		}
		fail(w, u, error->err);
		if (u == assumed || !(u->flags & FI_WRITE))
			return 0;
		move(u, &w->unused);
	}
	// The context of an atomic operation is the program's, which efa would take for its own.
	// Of a write that fails efa counts one less that is under way, and counted none more.
	if (u || error->flags & FI_ATOMIC) {
		error->op_context = NULL;
		error->flags = 0;
	}
	error->err_data = NULL;
	error->err_data_size = 0;
	error->prov_errno = SHM_FAILED;
	e->data.op_context = error->op_context;
	e->failed = 1;
	return 1;
}

// look reads the queue until what was posted just now has come to its end, or there is nothing
// more, and keeps what it reads for efa. -FI_EAGAIN: there is nothing more.
static ssize_t look(struct within_host *w, struct under_way *posted)
{
	ssize_t ret = 0;

	while (ret >= 0 && (!posted || posted->posted) && w->past_read - w->first_read < MOST) {
		ret = take(w, &w->read[w->past_read % MOST], posted);
		w->past_read += ret == 1;
	}
	return ret;
}

static int has_data(const struct fi_msg_rma *msg)
{
	size_t i;

	for (i = 0; i < msg->iov_count; i++)
		if (msg->msg_iov[i].iov_len)
			return 1;
	return 0;
}

static ssize_t access_within(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags,
			     uint64_t what)
{
	const struct fi_ops_rma *own = of(ep->rma)->own;
	struct within_host *w = of(ep->rma)->of;
	struct fi_msg_rma its = *msg;
	struct under_way *u;
	int at_once;
	ssize_t ret;

	// An empty one would never be complete.
	if (!has_data(msg))
		flags &= ~FI_DELIVERY_COMPLETE;
	// shm copies it when it is posted, if it can.
	at_once = !(flags & (FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE));
	pthread_mutex_lock(&w->lock);
	its.context = u = begin(w, msg->context, msg->addr, FI_RMA | what);
	ret = unposted(w, u);
	if (ret == 1 && at_once && look(w, NULL) != -FI_EAGAIN)
		ret = posted(w, u, -FI_EAGAIN);
	if (ret == 1) {
		ret = posted(w, u, what == FI_READ ? own->readmsg(ep, &its, flags) :
						     own->writemsg(ep, &its, flags));
		// The queue was empty: what is in it now is the end of this one.
		if (!ret && at_once)
			look(w, u);
		if (what == FI_WRITE && u == w->failed) {
			ret = -u->err;
			move(u, &w->unused);
		}
	}
	pthread_mutex_unlock(&w->lock);
	return ret;
}

static ssize_t read_within(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return access_within(ep, msg, flags, FI_READ);
}

static ssize_t write_within(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return access_within(ep, msg, flags, FI_WRITE);
}

// is_over says whether nothing more is to be expected of what is under way.
static int is_over(struct within_host *w)
{
	const struct under_way *u;
	uint64_t t;
	int any = 0;

	if (!w->closing || w->given_up)
		return 0;
	t = now();
	if (t - w->since > LONG_PATIENCE_NS)
		return 1;
	if (t - w->since < PATIENCE_NS || t - w->looked < PATIENCE_NS)
		return 0;
	w->looked = t;
	for (u = w->under_way; u; u = u->next) {
		if (u->flags & FI_WRITE)
			continue;
		any = 1;
		if (!weft_shm_is_gone(w->vector, u->peer))
			return 0;
	}
	return any;
}

// give_up has everything fail that is under way, but writes, for which efa does not wait.
static void give_up(struct within_host *w)
{
	struct under_way *u, *next;

	__atomic_store_n(&w->given_up, 1, __ATOMIC_RELAXED);
	for (u = w->under_way; u; u = next) {
		next = u->next;
		if (!(u->flags & FI_WRITE))
			fail(w, u, FI_ECANCELED);
	}
}

// next_entry is what efa has next.
static ssize_t next_entry(struct within_host *w, struct entry *e)
{
	struct under_way *u = w->failed;

	if (w->first_read != w->past_read) {
		*e = w->read[w->first_read++ % MOST];
		return 1;
	}
	w->first_read = w->past_read = 0;
	if (!u)
		return w->apart ? -FI_EAGAIN : take(w, e, NULL);
	memset(e, 0, sizeof *e);
	e->failed = 1;
	e->source = FI_ADDR_NOTAVAIL;
	e->data.op_context = e->error.op_context = u->context;
	e->error.flags = u->flags;
	e->error.err = u->err;
	e->error.prov_errno = SHM_FAILED;
	u->told = u->posted;
	move(u, u->posted ? &w->lost : &w->unused);
	return 1;
}

static ssize_t read_from(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	struct within_host *w = of(cq->ops)->of;
	struct entry e;
	ssize_t ret = 0;
	int looks;

	if (!count)
		return 0;
	pthread_mutex_lock(&w->lock);
	for (looks = 0; looks < LOOKS && !ret; looks++)
		ret = next_entry(w, &e);
	if (!ret)
		ret = -FI_EAGAIN;
	if (is_over(w))
		give_up(w);
	if (ret == 1) {
		*(struct fi_cq_data_entry *)buf = e.data;
		*source = e.source;
		if (e.failed) {
			w->error = e.error;
			w->error_unread = 1;
			ret = -FI_EAVAIL;
		}
	}
	pthread_mutex_unlock(&w->lock);
	return ret;
}

static ssize_t read_error(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct within_host *w = of(cq->ops)->of;
	ssize_t ret = -FI_EAGAIN;

	(void)flags;
	pthread_mutex_lock(&w->lock);
	if (w->error_unread) {
		// What a newer libfabric has beyond that, this one has no room for.
		memcpy(buf, &w->error, offsetof(struct fi_cq_err_entry, err_data_size) + sizeof(size_t));
		w->error_unread = 0;
		ret = 1;
	}
	pthread_mutex_unlock(&w->lock);
	return ret;
}

static struct table *copy_of(struct within_host *w, void *own, size_t size)
{
	struct table *t = weft_take(WEFT_FOR_HOST, sizeof *t + size);

	if (t) {
		t->of = w;
		t->own = own;
		memcpy(t + 1, own, size);
	}
	return t;
}

static void forget(struct within_host *w)
{
	weft_give(WEFT_FOR_HOST, w->msg);
	weft_give(WEFT_FOR_HOST, w->rma);
	weft_give(WEFT_FOR_HOST, w->cq);
	pthread_mutex_destroy(&w->lock);
	weft_give(WEFT_FOR_HOST, w);
}

int weft_within_host(struct fid_ep *endpoint)
{
	struct within_host *w;
	struct fid_cq *queue;
	struct fid_ep *shm = weft_inner_shm(endpoint, &queue);

	if (!shm)
		return -FI_ENOSYS;
	w = weft_take(WEFT_FOR_HOST, sizeof *w);
	if (!w)
		return -FI_ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	w->endpoint = &endpoint->fid;
	w->shm = shm;
	w->queue = queue;
	w->msg = copy_of(w, shm->msg, shm->msg->size);
	w->rma = copy_of(w, shm->rma, shm->rma->size);
	w->cq = copy_of(w, queue->ops, queue->ops->size);
	if (!w->msg || !w->rma || !w->cq) {
		forget(w);
		return -FI_ENOMEM;
	}
	shm->msg = (struct fi_ops_msg *)(w->msg + 1);
	shm->msg->sendmsg = send_within;
	shm->msg->inject = inject_within;
	shm->rma = (struct fi_ops_rma *)(w->rma + 1);
	shm->rma->readmsg = read_within;
	shm->rma->writemsg = write_within;
	queue->ops = (struct fi_ops_cq *)(w->cq + 1);
	queue->ops->readfrom = read_from;
	queue->ops->readerr = read_error;
	weft_name_strangers(queue);
	pthread_mutex_lock(&lock);
	w->next = hosts;
	hosts = w;
	pthread_mutex_unlock(&lock);
	return 0;
}

static struct within_host **at(const struct fid *endpoint)
{
	struct within_host **w = &hosts;

	while (*w && (*w)->endpoint != endpoint)
		w = &(*w)->next;
	return w;
}

void weft_within_host_closing(struct fid *endpoint, int apart)
{
	struct within_host *w;

	pthread_mutex_lock(&lock);
	w = *at(endpoint);
	pthread_mutex_unlock(&lock);
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->vector = weft_inner_vector(endpoint, w->shm);
	w->closing = 1;
	w->since = w->looked = now();
	w->apart = apart;
	if (apart)
		give_up(w);
	pthread_mutex_unlock(&w->lock);
}

void weft_within_host_closed(struct fid *endpoint, int ret)
{
	struct within_host **place, *w;

	pthread_mutex_lock(&lock);
	place = at(endpoint);
	w = *place;
	if (w && !ret)
		*place = w->next;
	pthread_mutex_unlock(&lock);
	if (!w)
		return;
	if (!ret) {
		forget(w);
		return;
	}
	pthread_mutex_lock(&w->lock);
	w->closing = w->apart = 0;
	__atomic_store_n(&w->given_up, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&w->lock);
}
