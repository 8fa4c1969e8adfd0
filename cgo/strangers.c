//go:build linux

#define _GNU_SOURCE
#include "strangers.h"
#include "innerendpoint.h"
#include "mapped.h"

#include <malloc.h>
#include <pthread.h>

// In libfabric 1.17, shm puts the source of a message into a queue only if it knows it. Else the
// queue has what an earlier message has left in that place, or 0, which is the first peer of a
// vector: who has sent is taken for another. efa, within a host, even takes the stranger's
// message for the next of that peer, and the peer's own never arrives. And it looks for a receive
// with FI_ADDR_UNSPEC then, which all receives match, those for one peer, too.
// So there it is another number, which no vector has.

#define PEER_CQ 24 // FI_CLASS_PEER_CQ, which headers before 1.17 do not have

// What the queue and the receives of a provider are to others, as in <rdma/fi_ext.h> of 1.17.
struct queue_calls {
	size_t size;
	ssize_t (*write)(struct fid *queue, void *context, uint64_t flags, size_t len, void *buf,
			 uint64_t data, uint64_t tag, fi_addr_t source);
	void *writeerr;
};

struct queue {
	struct fid fid;
	struct queue_calls *calls;
};

struct receives_calls {
	size_t size;
	int (*get_msg)(struct fid_ep *receives, fi_addr_t source, size_t size, void **entry);
	int (*get_tag)(struct fid_ep *receives, fi_addr_t source, uint64_t tag, void **entry);
	void *others[3];
};

struct receives {
	struct fid_ep endpoint;
	struct receives_calls *calls;
};

// Of each kind, all objects of the library have one table.
static struct queue_calls of_queues, naming;
static struct receives_calls of_receives, refusing;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static fi_addr_t named(fi_addr_t source)
{
	return source == FI_ADDR_NOTAVAIL ? WEFT_STRANGER : source;
}

static ssize_t write_named(struct fid *queue, void *context, uint64_t flags, size_t len, void *buf,
			   uint64_t data, uint64_t tag, fi_addr_t source)
{
	return of_queues.write(queue, context, flags, len, buf, data, tag, named(source));
}

static int get_msg(struct fid_ep *receives, fi_addr_t source, size_t size, void **entry)
{
	return of_receives.get_msg(receives, named(source), size, entry);
}

static int get_tag(struct fid_ep *receives, fi_addr_t source, uint64_t tag, void **entry)
{
	return of_receives.get_tag(receives, named(source), tag, entry);
}

static int name(const struct weft_looks *l, struct fid *fid)
{
	struct queue *queue = (struct queue *)fid;
	struct queue_calls calls;

	if (!weft_look(l, queue->calls, &calls, sizeof calls) || calls.size != sizeof calls)
		return -FI_ENOSYS;
	if (!of_queues.write) {
		of_queues = naming = calls;
		naming.write = write_named;
	}
	if (calls.write != of_queues.write)
		return -FI_ENOSYS;
	queue->calls = &naming;
	return 0;
}

static int refuse(const struct weft_looks *l, struct fid *fid)
{
	struct receives *receives = (struct receives *)fid;
	struct receives_calls calls;

	if (!weft_look(l, receives->calls, &calls, sizeof calls) || calls.size != sizeof calls)
		return -FI_ENOSYS;
	if (!of_receives.get_msg) {
		of_receives = refusing = calls;
		refusing.get_msg = get_msg;
		refusing.get_tag = get_tag;
	}
	if (calls.get_msg != of_receives.get_msg)
		return -FI_ENOSYS;
	// Another thread may be reading the queue.
	__atomic_store_n(&receives->calls, &refusing, __ATOMIC_RELEASE);
	return 0;
}

// within finds what is of a class in an object, for the function.
static int within(struct fid *object, size_t fclass,
		  int (*what)(const struct weft_looks *l, struct fid *fid))
{
	struct fid **word = (struct fid **)object;
	struct fid **end = word + malloc_usable_size(object) / sizeof *word;
	struct weft_looks l;
	int ret = -FI_ENOSYS;

	if (weft_begin_looks(&l))
		return ret;
	pthread_mutex_lock(&lock);
	for (; word < end && ret; word++)
		if (weft_is_inner(&l, object, *word, fclass))
			ret = what(&l, *word);
	pthread_mutex_unlock(&lock);
	weft_end_looks(&l);
	return ret;
}

int weft_name_strangers(struct fid_cq *queue)
{
	return within(&queue->fid, PEER_CQ, name);
}

int weft_refuse_strangers(struct fid_ep *endpoint)
{
	return within(&endpoint->fid, FI_CLASS_SRX_CTX, refuse);
}
