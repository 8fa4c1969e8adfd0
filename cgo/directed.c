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

// Each has one lock for it, with functions that take it, give it back and tell whether it is held.
struct lock {
	int kind;
	char own[40];
	int (*held)(void *own);
	void (*take)(void *own);
	void (*give)(void *own);
};

static int has_code(struct dl_phdr_info *library, size_t size, void *code)
{
	(void)size;
	return weft_has(library, code, 1, PF_X);
}

static int is_code(void *code)
{
	return code && dl_iterate_phdr(has_code, code);
}

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
		    is_code((void *)lock.held) && is_code((void *)lock.take) && is_code((void *)lock.give))
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
		    is_code((void *)owner.get_msg) && is_code((void *)owner.free_entry))
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
	void *context;
	uint64_t flags;
};

static int repost(struct fid_ep *ep, uint64_t peer, const struct posted *p)
{
	struct fi_msg msg = {
		.msg_iov = p->iov, .desc = (void **)p->desc, .iov_count = p->count, .addr = peer,
		.context = p->context,
	};

	return (int)fi_recvmsg(ep, &msg, p->flags & FI_COMPLETION);
}

int weft_cancel_directed(struct fid_ep *ep, uint64_t peer, void *context, uint64_t most)
{
	struct lock *lock;
	struct fid_peer_srx *srx = receives_of(ep, &lock);
	struct fi_peer_rx_entry *entry;
	struct posted *others;
	uint64_t count = 0, i;
	int found = 0, ret = 0;

	if (!srx)
		return -FI_ENOSYS;
	others = weft_take(WEFT_FOR_ACCESSES, most * sizeof *others);
	if (!others)
		return -FI_ENOMEM;
	lock->take(lock->own);
	// All of them, since what is posted again is behind those that stay.
	while (count + (uint64_t)found < most) {
		struct fi_peer_match_attr attr = { .addr = peer };
		struct posted *p = &others[count];

		entry = NULL;
		ret = srx->owner_ops->get_msg(srx, &attr, &entry);
		if (ret) {
			// It has made a place for a message that nobody receives.
			if (entry)
				srx->owner_ops->free_entry(entry);
			break;
		}
		if (entry->context == context) {
			found = 1;
			srx->owner_ops->free_entry(entry);
			continue;
		}
		p->context = entry->context;
		p->flags = entry->flags;
		p->count = entry->count < 8 ? entry->count : 8;
		memcpy(p->iov, entry->iov, p->count * sizeof p->iov[0]);
		if (entry->desc)
			memcpy(p->desc, entry->desc, p->count * sizeof p->desc[0]);
		count++;
		srx->owner_ops->free_entry(entry);
	}
	lock->give(lock->own);
	ret = found;
	for (i = 0; i < count; i++) {
		int failure = repost(ep, peer, &others[i]);

		if (failure)
			ret = failure;
	}
	weft_give(WEFT_FOR_ACCESSES, others);
	return ret;
}

#else

int weft_cancel_directed(struct fid_ep *ep, uint64_t peer, void *context, uint64_t most)
{
	(void)ep, (void)peer, (void)context, (void)most;
	return -FI_ENOSYS;
}

#endif
