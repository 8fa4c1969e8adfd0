// Takes receives back from an endpoint that has them as libfabric 2 does, and that does not take all of the
// others again. Ends with 1 and a line that says what was wrong.
#include "../../cgo/directed.h"

#include <stdio.h>
#include <stdlib.h>

#if __has_include(<rdma/providers/fi_peer.h>)

#include <pthread.h>
#include <rdma/providers/fi_peer.h>

enum { MOST = 8, PEER = 3 };

// generic_lock is as struct ofi_genlock.
struct generic_lock {
	enum { MUTEX } type;
	union {
		pthread_mutex_t mutex;
		pthread_spinlock_t spinlock;
	} base;
	int (*held)(void *base);
	void (*take)(void *base);
	void (*give)(void *base);
};

struct receive {
	struct fi_peer_rx_entry entry;
	struct iovec iov;
	void *desc;
};

struct receives {
	struct fid_peer_srx srx;
	struct generic_lock *lock;
	struct receive *all[MOST];
	int count;
};

struct endpoint {
	struct fid_ep ep;
	void *something;
	struct fid_peer_srx *srx;
};

static struct receives *receives;
static int is_held, calls;
static unsigned refused; // which calls are, by bit

static void check(int is, const char *what)
{
	if (!is) {
		printf("%s\n", what);
		exit(1);
	}
}

static int held(void *base)
{
	(void)base;
	return is_held;
}

static void take(void *base)
{
	check(base == &receives->lock->base, "another lock is taken");
	is_held = 1;
}

static void give(void *base)
{
	check(base == &receives->lock->base, "another lock is given back");
	is_held = 0;
}

static struct receive *new_receive(fi_addr_t peer, uintptr_t context, size_t length)
{
	struct receive *r = calloc(1, sizeof *r);

	r->iov = (struct iovec){ (void *)(context * 4096), length };
	r->entry.iov = &r->iov;
	r->entry.desc = &r->desc;
	r->entry.count = 1;
	r->entry.addr = peer;
	r->entry.context = (void *)context;
	r->entry.flags = FI_COMPLETION | FI_MSG | FI_RECV;
	return r;
}

static int get_msg(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr, struct fi_peer_rx_entry **entry)
{
	int i, k;

	check(is_held, "the lock is not taken");
	check(srx == &receives->srx && attr->addr == PEER, "of another peer");
	// Those from anybody are a list of their own, behind those from the peer.
	for (k = 0; k < 2; k++)
		for (i = 0; i < receives->count; i++)
			if (receives->all[i]->entry.addr == (k ? FI_ADDR_UNSPEC : PEER)) {
				*entry = &receives->all[i]->entry;
				receives->count--;
				for (; i < receives->count; i++)
					receives->all[i] = receives->all[i + 1];
				return 0;
			}
	*entry = &new_receive(PEER, 0, 0)->entry;
	return -FI_ENOENT;
}

static void free_entry(struct fi_peer_rx_entry *entry)
{
	check(is_held, "the lock is not taken");
	free(entry);
}

static ssize_t recvmsg_(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	(void)ep;
	check(!is_held, "the lock is taken by who posts");
	check(flags == FI_COMPLETION && msg->iov_count == 1, "another receive");
	check(msg->msg_iov->iov_base == (void *)((uintptr_t)msg->context * 4096), "another buffer");
	if (refused & (1u << calls++))
		return -FI_ENOMEM;
	receives->all[receives->count++] =
		new_receive(msg->addr, (uintptr_t)msg->context, msg->msg_iov->iov_len);
	return 0;
}

static void post(fi_addr_t peer, uintptr_t context)
{
	receives->all[receives->count++] = new_receive(peer, context, context);
}

static void are(const char *contexts)
{
	int i;

	for (i = 0; contexts[i]; i++)
		check(i < receives->count && (uintptr_t)receives->all[i]->entry.context == (uintptr_t)(contexts[i] - '0'),
		      "other receives are left");
	check(i == receives->count, "more receives are left");
}

int main(void)
{
	static struct fi_ops_srx_owner owner = { .size = sizeof owner, .get_msg = get_msg, .free_entry = free_entry };
	static struct fi_ops_msg calls_of = { .size = sizeof calls_of, .recvmsg = recvmsg_ };
	struct endpoint *e = calloc(1, sizeof *e);
	struct weft_refusal refusals[MOST];
	struct weft_ended ended;

	receives = calloc(1, sizeof *receives);
	receives->srx.ep_fid.fid.fclass = FI_CLASS_SRX_CTX;
	receives->srx.owner_ops = &owner;
	receives->lock = calloc(1, sizeof *receives->lock);
	receives->lock->held = held;
	receives->lock->take = take;
	receives->lock->give = give;
	e->ep.msg = &calls_of;
	e->srx = &receives->srx;

	for (uintptr_t c = 1; c <= 5; c++)
		post(PEER, c);
	ended = weft_cancel_directed(&e->ep, PEER, (void *)2, MOST, refusals);
	check(ended.count == 1 && ended.refusals == 0, "one has ended");
	are("1345");
	ended = weft_cancel_directed(&e->ep, PEER, (void *)2, MOST, refusals);
	check(ended.count == 0 && ended.refusals == 0, "it is not there any more");
	are("1345");
	calls = 0;
	refused = 1u << 0 | 1u << 2; // 1 and 5
	ended = weft_cancel_directed(&e->ep, PEER, (void *)4, MOST, refusals);
	check(ended.count == 1 && ended.refusals == 2, "one has ended, and two were refused");
	check(refusals[0].context == (void *)1 && refusals[0].error == FI_ENOMEM, "it says which");
	check(refusals[1].context == (void *)5 && refusals[1].error == FI_ENOMEM, "it says which, again");
	are("3");
	refused = 0;
	// Those from anybody are as they were.
	post(FI_ADDR_UNSPEC, 6);
	post(PEER, 7);
	ended = weft_cancel_directed(&e->ep, PEER, (void *)9, MOST, refusals);
	check(ended.count == 0 && ended.refusals == 0, "none has ended");
	are("376");
	check(receives->all[2]->entry.addr == FI_ADDR_UNSPEC, "from anybody");
	ended = weft_cancel_directed(&e->ep, PEER, NULL, 2, refusals);
	check(ended.count == 2 && ended.refusals == 0, "all have ended");
	are("6");
	e->srx = NULL;
	ended = weft_cancel_directed(&e->ep, PEER, (void *)6, MOST, refusals);
	check(ended.count == -FI_ENOSYS, "there is no list");
	free(receives->all[0]);
	free(receives->lock);
	free(receives);
	free(e);
	printf("ok\n");
	return 0;
}

#else

int main(void)
{
	struct weft_ended ended = weft_cancel_directed(NULL, 0, NULL, 0, NULL);

	printf("%s\n", ended.count == -FI_ENOSYS ? "ok" : "there is a list");
	return 0;
}

#endif
