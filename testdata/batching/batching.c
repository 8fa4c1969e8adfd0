// Takes turns of random operations with an endpoint that holds back what carries
// FI_MORE, as hardware does, and refuses or fails some calls. Ends with 1 and a
// line that says what was wrong if a turn leaves something held back, or lets an
// operation overtake another.
//
//	batching SEED ROUNDS
#include "../../cgo/shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// libfabric's, of which nothing is linked.
const char *fi_strerror(int number)
{
	return strerror(number);
}

// Receives are a direction of their own, like one peer more.
enum { OPS = 48, PEERS = 12, RECEIVING = PEERS };

// What is held back is started by later calls of the same family.
enum { TAGGED, TAGGED_RECEIVES, MESSAGES, RECEIVES, REMOTE, ATOMICS, FAMILIES };

static unsigned seed;
static struct {
	int held[FAMILIES];	  // operations that wait for a later one
	int rings;		  // starts of the hardware
	int calls, with_more;	  // of the calls that took an operation
	uint64_t flags;		  // of the last call with FI_MORE
	int refused[PEERS + 1];	  // in this turn
	int trouble;	      // percent of calls that are refused or fail
	ssize_t answer[FAMILIES]; // to all calls, unless it is 0
} hardware;

static unsigned next_random(unsigned limit)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % limit;
}

static ssize_t call(int family, fi_addr_t peer, uint64_t flags)
{
	int *held = &hardware.held[family];

	if (hardware.refused[peer]) {
		printf("an operation for peer %d overtook one that was refused\n",
		       (int)peer);
		exit(1);
	}
	if (hardware.answer[family]) {
		*held = 0;
		return hardware.answer[family];
	}
	if (next_random(100) < (unsigned)hardware.trouble) {
		// What is held back is started when a later operation fails.
		*held = 0;
		if (next_random(3) == 0)
			return -FI_EMSGSIZE;
		hardware.refused[peer] = 1;
		return -FI_EAGAIN;
	}
	hardware.calls++;
	if (flags & FI_MORE) {
		hardware.flags = flags;
		hardware.with_more++;
		++*held;
		return 0;
	}
	*held = 0;
	hardware.rings++;
	return 0;
}

static ssize_t tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc,
		     fi_addr_t peer, uint64_t tag, void *context)
{
	return call(TAGGED, peer, 0);
}

static ssize_t tinject(struct fid_ep *ep, const void *buf, size_t len,
		       fi_addr_t peer, uint64_t tag)
{
	return call(TAGGED, peer, 0);
}

static ssize_t tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			uint64_t flags)
{
	return call(TAGGED, msg->addr, flags);
}

static ssize_t trecv(struct fid_ep *ep, void *buf, size_t len, void *desc,
		     fi_addr_t peer, uint64_t tag, uint64_t ignore, void *context)
{
	return call(TAGGED_RECEIVES, RECEIVING, 0);
}

static ssize_t trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			uint64_t flags)
{
	return call(TAGGED_RECEIVES, RECEIVING, flags);
}

static ssize_t recv_(struct fid_ep *ep, void *buf, size_t len, void *desc,
		     fi_addr_t peer, void *context)
{
	return call(RECEIVES, RECEIVING, 0);
}

static ssize_t recvmsg_(struct fid_ep *ep, const struct fi_msg *msg,
			uint64_t flags)
{
	return call(RECEIVES, RECEIVING, flags);
}

static ssize_t send_(struct fid_ep *ep, const void *buf, size_t len, void *desc,
		     fi_addr_t peer, void *context)
{
	return call(MESSAGES, peer, 0);
}

static ssize_t sendmsg_(struct fid_ep *ep, const struct fi_msg *msg,
			uint64_t flags)
{
	return call(MESSAGES, msg->addr, flags);
}

static ssize_t write_(struct fid_ep *ep, const void *buf, size_t len, void *desc,
		      fi_addr_t peer, uint64_t addr, uint64_t key, void *context)
{
	return call(REMOTE, peer, 0);
}

static ssize_t writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			uint64_t flags)
{
	return call(REMOTE, msg->addr, flags);
}

static ssize_t atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
		      fi_addr_t peer, uint64_t addr, uint64_t key,
		      enum fi_datatype type, enum fi_op op, void *context)
{
	return call(ATOMICS, peer, 0);
}

static ssize_t atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			 uint64_t flags)
{
	return call(ATOMICS, msg->addr, flags);
}

static ssize_t nothing_there(struct fid_cq *cq, void *buf, size_t count,
			     fi_addr_t *source)
{
	return -FI_EAGAIN;
}

static struct fi_ops_tagged tagged = {
	.send = tsend, .inject = tinject, .sendmsg = tsendmsg, .recv = trecv,
	.recvmsg = trecvmsg,
};
static struct fi_ops_msg messages = {
	.send = send_, .sendmsg = sendmsg_, .recv = recv_, .recvmsg = recvmsg_,
};
static struct fi_ops_rma rma = { .write = write_, .writemsg = writemsg };
static struct fi_ops_atomic atomics = { .write = atomic, .writemsg = atomicmsg };
static struct fi_ops_cq queue_calls = { .readfrom = nothing_there };

static void fail(const char *what)
{
	printf("%s\n", what);
	exit(1);
}

static int held(void)
{
	int family, n = 0;

	for (family = 0; family < FAMILIES; family++)
		n += hardware.held[family];
	return n;
}

int main(int argc, char **argv)
{
	static const uint32_t kinds[] = {
		WEFT_TSEND, WEFT_TINJECT, WEFT_TRECV, WEFT_SEND,
		WEFT_RECV, WEFT_WRITE, WEFT_ATOMIC, 0,
	};
	struct fid_ep ep;
	struct fid_cq cq;
	struct weft_op ops[OPS];
	struct weft_extra extras[OPS];
	struct weft_slot slots[OPS];
	struct weft_turn turn;
	int rounds, round, i;

	if (argc != 3)
		return 2;
	seed = (unsigned)atoi(argv[1]);
	rounds = atoi(argv[2]);
	memset(&ep, 0, sizeof ep);
	memset(&cq, 0, sizeof cq);
	memset(&turn, 0, sizeof turn);
	ep.tagged = &tagged;
	ep.msg = &messages;
	ep.rma = &rma;
	ep.atomic = &atomics;
	cq.ops = &queue_calls;
	turn.ep = &ep;
	turn.cq = &cq;
	turn.ops = ops;
	turn.batch = 1;
	turn.send_flags = FI_COMPLETION;

	for (round = 0; round < rounds; round++) {
		// Each other round without trouble, and of one kind.
		int quiet = round % 2, n = 1 + (int)next_random(OPS);

		memset(ops, 0, sizeof ops);
		memset(extras, 0, sizeof extras);
		memset(&hardware, 0, sizeof hardware);
		hardware.trouble = quiet ? 0 : 30;
		for (i = 0; i < n; i++) {
			ops[i].kind = kinds[quiet ? 0 : next_random(8)];
			ops[i].peer = next_random(PEERS);
			ops[i].slot = &slots[i];
			if (ops[i].kind == WEFT_WRITE || ops[i].kind == WEFT_ATOMIC)
				ops[i].extra = &extras[i];
		}
		turn.op_count = (uint32_t)n;
		weft_take_turn((uintptr_t)&turn);
		if (held())
			fail("an operation is held back after the turn");
		if (quiet && (hardware.rings != 1 || hardware.calls != n))
			fail("operations of one kind were not started together");
		if (quiet && n > 1 && hardware.with_more != n - 1)
			fail("all but the last operation should carry FI_MORE");
	}

	memset(ops, 0, sizeof ops);
	memset(&hardware, 0, sizeof hardware);
	turn.op_count = 2;
	for (i = 0; i < 2; i++) {
		ops[i].kind = i == 0 ? WEFT_TSEND : WEFT_TINJECT;
		ops[i].slot = &slots[i];
	}
	weft_take_turn((uintptr_t)&turn);
	if (hardware.with_more != 1 || held())
		fail("an inject starts what was held back before it");
	if (hardware.flags != (FI_MORE | FI_COMPLETION))
		fail("FI_MORE comes with the default flags");
	turn.batch = 0;
	ops[1].kind = WEFT_TSEND;
	memset(&hardware, 0, sizeof hardware);
	weft_take_turn((uintptr_t)&turn);
	if (hardware.with_more != 0 || hardware.rings != 2)
		fail("no FI_MORE without batching");
	turn.batch = 1;
	turn.op_count = 1;
	weft_take_turn((uintptr_t)&turn);
	if (hardware.with_more != 0)
		fail("no FI_MORE for a single operation");

	// A lack of memory that sends report may last.
	turn.op_count = 2;
	ops[1].kind = WEFT_TRECV;
	memset(&hardware, 0, sizeof hardware);
	hardware.answer[TAGGED] = hardware.answer[TAGGED_RECEIVES] = -FI_ENOMEM;
	weft_take_turn((uintptr_t)&turn);
	if (ops[0].result != -FI_ENOMEM)
		fail("a send without memory fails");
	if (ops[1].result != -FI_EAGAIN)
		fail("a receive without memory is refused");

	// A write that is refused keeps the send behind it from being tried.
	memset(ops, 0, sizeof ops);
	memset(&hardware, 0, sizeof hardware);
	hardware.answer[REMOTE] = -FI_EAGAIN;
	turn.op_count = 3;
	for (i = 0; i < 3; i++) {
		ops[i].kind = i == 1 ? WEFT_WRITE : WEFT_TSEND;
		ops[i].slot = &slots[i];
	}
	ops[1].extra = &extras[1];
	memset(extras, 0, sizeof extras);
	weft_take_turn((uintptr_t)&turn);
	if (hardware.with_more != 0 || held())
		fail("a send is held back for one behind a write to the same peer");
	ops[1].peer = 1;
	weft_take_turn((uintptr_t)&turn);
	if (hardware.with_more != 1 || held())
		fail("a write to another peer does not matter");
	puts("ok");
	return 0;
}
