//go:build linux

#define _GNU_SOURCE
#include "directed.h"

#if __has_include(<rdma/providers/fi_peer.h>)

#include "counted.h"
#include "mapped.h"

#include <malloc.h>
#include <rdma/providers/fi_peer.h>
#include <string.h>

// shm, efa and ofi_rxm of libfabric 2 have one list of receives in common. Its means for providers that
// receive into others' (fi_peer.h) give the first one from a peer. All of that peer's are taken, and
// those that are not to end posted again, in order; a message that comes meanwhile waits for them.

// What these means take for what has come. Others of libfabric 1 and 2 take something else.
struct fi_peer_match_attr;
struct arrival {
	fi_addr_t peer;
	size_t length;
	uint64_t tag;
};
typedef int (*get_receive)(struct fid_peer_srx *srx, struct fi_peer_match_attr *arrival,
			   struct fi_peer_rx_entry **entry);
#define ARE_KNOWN _Generic(((struct fi_ops_srx_owner *)0)->get_msg, get_receive : 1, default : 0)

// Each has one lock for it, with functions that take it, give it back and tell whether it is held.
struct lock {
	int kind;
	uint64_t own[5]; // where a mutex can be
	int (*held)(void *own);
	void (*take)(void *own);
	void (*give)(void *own);
};

// lock_of finds the lock of a list of receives.
static struct lock *lock_of(const struct weft_looks *l, const struct fid_peer_srx *srx)
{
	size_t size = malloc_usable_size((void *)srx), i;
	struct lock *word, lock;

	for (i = sizeof *srx; i + sizeof word <= size; i += sizeof word) {
		memcpy(&word, (const char *)srx + i, sizeof word);
		if ((uintptr_t)word < 4096 || (uintptr_t)word % sizeof(void *) != 0)
			continue;
		if (weft_look(l, word, &lock, sizeof lock) && (unsigned)lock.kind < 8 &&
		    weft_is_code((void *)lock.held) && weft_is_code((void *)lock.take) &&
		    weft_is_code((void *)lock.give))
			return word;
	}
	return NULL;
}

// receives_of finds the list of receives of an endpoint, and its lock.
static struct fid_peer_srx *receives_of(struct fid_ep *ep, struct lock **lock)
{
	size_t size = malloc_usable_size(ep), i;
	struct fid_peer_srx *word = NULL, srx;
	struct fi_ops_srx_owner owner;
	struct weft_looks l;

	*lock = NULL;
	if (weft_begin_looks(&l))
		return NULL;
	for (i = sizeof *ep; !*lock && i + sizeof word <= size; i += sizeof word) {
		memcpy(&word, (char *)ep + i, sizeof word);
		if ((uintptr_t)word < 4096 || (uintptr_t)word % _Alignof(struct fid) != 0)
			continue;
		if (weft_look(&l, word, &srx, sizeof srx) && srx.ep_fid.fid.fclass == FI_CLASS_SRX_CTX &&
		    weft_look(&l, srx.owner_ops, &owner, sizeof owner) &&
		    weft_is_code((void *)owner.get_msg) && weft_is_code((void *)owner.free_entry))
			*lock = lock_of(&l, word);
	}
	weft_end_looks(&l);
	return *lock ? word : NULL;
}

// posted is a receive that was taken from the list.
struct posted {
	struct iovec iov[8];
	void *desc[8];
	size_t count;
	fi_addr_t peer;
	void *context;
	uint64_t flags;
};

static int repost(struct fid_ep *ep, const struct posted *p)
{
	struct fi_msg msg = {
		.msg_iov = p->iov, .desc = (void **)p->desc, .iov_count = p->count, .addr = p->peer,
		.context = p->context,
	};

	return (int)fi_recvmsg(ep, &msg, p->flags & FI_COMPLETION);
}

// take takes the first receive from a peer out of the list, and says whether there was one.
static int take(struct fid_peer_srx *srx, uint64_t peer, struct posted *p)
{
	struct arrival arrival = { .peer = peer };
	struct fi_peer_rx_entry *entry = NULL;
	int ret = ((get_receive)srx->owner_ops->get_msg)(srx, (struct fi_peer_match_attr *)&arrival, &entry);

	if (!ret) {
		p->peer = entry->addr;
		p->context = entry->context;
		p->flags = entry->flags;
		p->count = entry->count < 8 ? entry->count : 8;
		memcpy(p->iov, entry->iov, p->count * sizeof p->iov[0]);
		if (entry->desc)
			memcpy(p->desc, entry->desc, p->count * sizeof p->desc[0]);
	}
	// Where there was none, it has made a place for a message that nobody receives.
	if (entry)
		srx->owner_ops->free_entry(entry);
	return !ret;
}

struct weft_ended weft_cancel_directed(struct fid_ep *ep, uint64_t peer, const void *context, uint64_t most,
				       struct weft_refusal *refusals)
{
	struct weft_ended ended = { .count = -FI_ENOSYS };
	struct lock *lock;
	struct fid_peer_srx *srx = ARE_KNOWN ? receives_of(ep, &lock) : NULL;
	struct posted *others;
	uint64_t count = 0, i;
	int is_its = 1;

	if (!srx)
		return ended;
	others = weft_take(WEFT_FOR_ACCESSES, most * sizeof *others);
	if (!others) {
		ended.count = -FI_ENOMEM;
		return ended;
	}
	ended.count = 0;
	lock->take(lock->own);
	// All of them, since what is posted again is behind those that stay. One from anybody says that there
	// is none of the peer's any more.
	while (is_its && count + (uint64_t)ended.count < most && take(srx, peer, &others[count])) {
		is_its = others[count].peer == peer;
		if (is_its && (!context || others[count].context == context))
			ended.count++;
		else
			count++;
	}
	lock->give(lock->own);
	for (i = 0; i < count; i++) {
		int ret = repost(ep, &others[i]);

		if (ret)
			refusals[ended.refusals++] = (struct weft_refusal){ others[i].context, (uint64_t)-ret };
	}
	weft_give(WEFT_FOR_ACCESSES, others);
	return ended;
}

#else

struct weft_ended weft_cancel_directed(struct fid_ep *ep, uint64_t peer, const void *context, uint64_t most,
				       struct weft_refusal *refusals)
{
	(void)ep, (void)peer, (void)context, (void)most, (void)refusals;
	return (struct weft_ended){ .count = -FI_ENOSYS };
}

#endif
