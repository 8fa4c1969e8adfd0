//go:build linux

#include "pause.h"
#include "segments.h"
#include "shim.h"

#include <string.h>

// How many directions (a peer, or receiving) may be out of room before the rest
// of a turn's operations is left for the next turn.
#define REFUSALS 8

// Who is out of room in this turn. An operation must not overtake an earlier one
// of its direction, so that the later ones of the same peer are not tried.
struct refusals {
	uint64_t peers[REFUSALS];
	int count;
	int receives;
};

static int is_receive(const struct weft_op *op)
{
	return op->kind == WEFT_TRECV || op->kind == WEFT_RECV;
}

static int is_refused(const struct refusals *r, const struct weft_op *op)
{
	int k;

	if (is_receive(op))
		return r->receives;
	if (r->count == REFUSALS)
		return 1;
	for (k = 0; k < r->count; k++)
		if (r->peers[k] == op->peer)
			return 1;
	return 0;
}

static void refuse(struct refusals *r, const struct weft_op *op)
{
	if (is_receive(op))
		r->receives = 1;
	else
		r->peers[r->count++] = op->peer;
}

// Operations of one family go through the same calls of the endpoint.
enum { TAGGED_SENDS, TAGGED_RECEIVES, SENDS, RECEIVES, REMOTE, ATOMICS, FAMILIES };

static int family(const struct weft_op *op)
{
	switch (op->kind) {
	case WEFT_TSEND:
	case WEFT_TINJECT:
		return TAGGED_SENDS;
	case WEFT_TRECV:
		return TAGGED_RECEIVES;
	case WEFT_SEND:
	case WEFT_INJECT:
		return SENDS;
	case WEFT_RECV:
		return RECEIVES;
	case WEFT_READ:
	case WEFT_WRITE:
	case WEFT_WRITE_INJECT:
		return REMOTE;
	case WEFT_ATOMIC:
	case WEFT_ATOMIC_INJECT:
	case WEFT_FETCH:
	case WEFT_COMPARE:
		return ATOMICS;
	}
	return FAMILIES;
}

// A peek looks for what is there now, and must not wait for others.
static int may_wait(const struct weft_op *op)
{
	return !op->extra ||
	       !(op->extra->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD));
}

// in_the_way says whether one of the operations between i and k, of another family,
// may be refused such that k is too, untried. A refusal is of one peer, or of all
// receives, and of all peers when there are too many.
static int in_the_way(const struct weft_turn *t, uint32_t i, uint32_t k,
		      const struct refusals *r)
{
	const struct weft_op *op = &t->ops[k];
	int more_refusals = 0;

	while (++i < k) {
		const struct weft_op *other = &t->ops[i];

		if (is_receive(other) != is_receive(op) || is_refused(r, other))
			continue;
		if (is_receive(op) || other->peer == op->peer ||
		    r->count + ++more_refusals == REFUSALS)
			return 1;
	}
	return 0;
}

// more returns the flags of an operation that the provider may hold back until the
// next one, or 0 if there is none of its family that will surely be tried: what is
// held back is started by a later operation without FI_MORE, or by one that fails,
// and by nothing else. An operation that is refused stays refused.
static uint64_t more(const struct weft_turn *t, uint32_t i,
		     const struct refusals *r)
{
	const struct weft_op *op = &t->ops[i];
	int f = family(op);
	uint32_t k = i + 1;

	if (f == FAMILIES || !may_wait(op))
		return 0;
	while (k < t->op_count &&
	       (family(&t->ops[k]) != f || is_refused(r, &t->ops[k])))
		k++;
	if (k == t->op_count || in_the_way(t, i, k, r))
		return 0;
	return FI_MORE | (is_receive(op) ? t->receive_flags : t->send_flags);
}

// post_all says whether some operation has ended without a completion in the queue.
static int post_all(struct weft_turn *t)
{
	struct refusals refused;
	uint32_t i;
	int ended = 0;

	refused.count = refused.receives = 0;
	t->posted = 0;
	for (i = 0; i < t->op_count; i++) {
		struct weft_op *op = &t->ops[i];

		if (is_refused(&refused, op)) {
			op->result = -FI_EAGAIN;
			continue;
		}
		op->result = weft_post(t->ep, op,
				       t->batch ? more(t, i, &refused) : 0);
		// shm says this when its queue of receives is full.
		if (is_receive(op) && op->result == -FI_ENOMEM)
			op->result = -FI_EAGAIN;
		if (op->result >= 0)
			t->posted++;
		else if (op->result == -FI_EAGAIN)
			refuse(&refused, op);
		ended |= op->result > 0;
	}
	return ended;
}

// slot_of returns the context of the operation, if it was posted in a turn. What
// a peer did to this side's memory belongs to no operation, and its context is
// whatever the provider left there. Deferred work (deferred.h) has a context of
// its own, with the address of a counter where the kind would be.
static const struct weft_slot *slot_of(uint64_t flags, const void *context)
{
	const struct weft_slot *slot = context;

	if (flags & (FI_REMOTE_WRITE | FI_REMOTE_READ))
		return NULL;
	return slot && slot->kind <= UINT8_MAX ? slot : NULL;
}

static void fill(struct weft_completion *c, const struct fi_cq_tagged_entry *e,
		 uint64_t source)
{
	const struct weft_slot *slot = slot_of(e->flags, e->op_context);

	c->token = slot ? slot->token : UINT64_MAX;
	c->kind = slot ? slot->kind : 0;
	c->flags = e->flags;
	c->buf = (uintptr_t)e->buf;
	c->len = e->len;
	c->tag = e->tag;
	c->data = e->data;
	c->source = source;
	c->olen = 0;
	c->err = 0;
	c->prov_errno = 0;
	c->text = -1;
}

// Formats are prefixes of each other: what an entry does not have is zero.
static void fill_short(const struct weft_turn *t, struct weft_completion *c,
		       const void *entry, uint64_t source)
{
	struct fi_cq_tagged_entry e;
	uintptr_t slot;

	memset(&e, 0, sizeof e);
	memcpy(&e, entry, t->stride);
	slot = (uintptr_t)e.op_context;
	// Without flags, what a peer did looks like anything else.
	if (t->stride == sizeof(struct fi_cq_entry) &&
	    (slot < t->slots || slot >= t->slots_end))
		e.op_context = NULL;
	fill(c, &e, source);
}

static void fill_all(struct weft_turn *t, const struct fi_cq_tagged_entry *entries,
		     const fi_addr_t *sources, ssize_t count)
{
	struct weft_completion *c = &t->completions[t->reaped];
	ssize_t i;

	if (!t->stride)
		for (i = 0; i < count; i++)
			fill(&c[i], &entries[i], sources[i]);
	else
		for (i = 0; i < count; i++)
			fill_short(t, &c[i], (const char *)entries + i * t->stride,
				   sources[i]);
	t->reaped += (uint32_t)count;
}

// Reads one error into a completion. 1: read; 0: none there after all.
static int fill_error(struct weft_turn *t, struct weft_completion *c)
{
	struct fi_cq_err_entry e;
	const struct weft_slot *slot;
	const char *text = NULL;
	char *room;
	ssize_t ret;

	memset(&e, 0, sizeof e);
	ret = fi_cq_readerr(t->cq, &e, 0);
	if (ret == 0 || ret == -FI_EAGAIN)
		return 0;
	if (ret < 0) {
		t->error = (int)ret;
		return 0;
	}
	slot = slot_of(e.flags, e.op_context);
	c->buf = (uintptr_t)e.buf;
	c->token = slot ? slot->token : UINT64_MAX;
	c->kind = slot ? slot->kind : 0;
	c->flags = e.flags;
	c->len = e.len;
	c->tag = e.tag;
	c->data = e.data;
	c->source = FI_ADDR_NOTAVAIL;
	// sockets has it in an int.
	c->olen = (int64_t)e.olen < 0 ? (uint32_t)e.olen : e.olen;
	// shm reports negative codes.
	c->err = e.err < 0 ? -e.err : e.err;
	if (c->err == 0)
		c->err = FI_EOTHER;
	c->prov_errno = e.prov_errno;
	if (c->err == FI_ETRUNC && e.data == weft_cut()) {
		c->err = FI_ECONNABORTED;
		c->data = c->olen = 0;
	}
	// It is the provider's, until the next look at an error.
	c->data_length = 0;
	if (e.err_data && e.err_data_size) {
		c->data_length = e.err_data_size < WEFT_ERROR_DATA
					 ? (uint32_t)e.err_data_size
					 : WEFT_ERROR_DATA;
		memcpy(t->data[t->text_count], e.err_data, c->data_length);
	}
	c->text = (int32_t)t->text_count;
	room = t->texts[t->text_count++];
	room[0] = 0;
	if (t->words == WEFT_PROVIDER_WORDS)
		text = fi_cq_strerror(t->cq, e.prov_errno, e.err_data, room,
				      WEFT_TEXT_SIZE);
	else if (t->words == WEFT_ERRNO_WORDS)
		text = fi_strerror(e.prov_errno);
	if (text && text != room)
		strncpy(room, text, WEFT_TEXT_SIZE - 1);
	room[WEFT_TEXT_SIZE - 1] = 0;
	return 1;
}

// Asking for sources where there are none costs a look at each.
static ssize_t read_queue(const struct weft_turn *t,
			  struct fi_cq_tagged_entry *entries, uint32_t room,
			  fi_addr_t *sources)
{
	ssize_t ret, i;

	if (!t->no_source)
		return fi_cq_readfrom(t->cq, entries, room, sources);
	ret = fi_cq_read(t->cq, entries, room);
	for (i = 0; i < ret; i++)
		sources[i] = FI_ADDR_NOTAVAIL;
	return ret;
}

static ssize_t wait_queue(const struct weft_turn *t,
			  struct fi_cq_tagged_entry *entry, fi_addr_t *source,
			  int wait_ms)
{
	if (!t->no_source)
		return fi_cq_sreadfrom(t->cq, entry, 1, source, NULL, wait_ms);
	*source = FI_ADDR_NOTAVAIL;
	return fi_cq_sread(t->cq, entry, 1, NULL, wait_ms);
}

// What a look takes that finds something is mostly the way of what the peer has
// written from its core to this one: 100 to 200 ns where the two are near to each
// other, 300 to 400 where they are not, on an AMD EPYC. Near, looks that follow soon
// are best. Far, they take the lock of shm's queue, and its cache line, from a peer
// that wants to put something there, and a message takes up to a tenth longer by
// that. The rest becomes longer by a step when a look took long, or shorter, so that
// what most looks take decides, and one that was interrupted does not tell.
static void learn_rest(struct weft_turn *t, int64_t took)
{
	const int64_t far = 250;
	const uint32_t step = 23;

	if (took > far)
		t->rest_ns += t->rest_ns < WEFT_REST_MOST_NS ? step : 0;
	else
		t->rest_ns -= t->rest_ns > WEFT_REST_NS ? step : 0;
}

// rests_of is how many of the shortest rests one takes: a turn that finds nothing lasts
// as long with long ones, since who waits for the turn to end waits for all of them.
static uint32_t rests_of(const struct weft_turn *t, uint32_t spins)
{
	uint32_t rests = t->rest_ns / WEFT_REST_NS;

	return rests < spins ? rests : spins;
}

// The clock takes 20 to 40 ns at each look: one turn of so many pays that.
#define TIMED_EACH 64

void weft_take_turn(uintptr_t address)
{
	struct weft_turn *t = (struct weft_turn *)address;
	struct fi_cq_tagged_entry entries[WEFT_BATCH];
	fi_addr_t sources[WEFT_BATCH];
	uint32_t spins = t->spins, wait_ms = t->wait_ms;
	int64_t start = 0;
	int timed = 0;
	ssize_t ret;

	t->error = 0;
	t->reaped = 0;
	t->text_count = 0;
	if (t->until_timed-- == 0) {
		timed = 1;
		t->until_timed = TIMED_EACH - 1;
	}
	if (post_all(t))
		spins = wait_ms = 0;
	while (t->reaped < t->completion_limit && t->text_count < WEFT_TEXTS) {
		uint32_t room = t->completion_limit - t->reaped;

		if (room > WEFT_BATCH)
			room = WEFT_BATCH;
		ret = read_queue(t, entries, room, sources);
		if (ret > 0) {
			if (start)
				learn_rest(t, weft_since(start));
			start = 0;
			fill_all(t, entries, sources, ret);
			if ((uint32_t)ret < room)
				return;
			continue;
		}
		if (ret == -FI_EAVAIL) {
			if (fill_error(t, &t->completions[t->reaped]))
				t->reaped++;
			else
				return;
			continue;
		}
		if (ret != 0 && ret != -FI_EAGAIN && ret != -FI_EINTR) {
			t->error = (int)ret;
			return;
		}
		if (t->reaped)
			return;
		if (spins) {
			spins -= rests_of(t, spins);
			weft_rest(t->rest_ns);
			start = timed ? weft_now() : 0;
			continue;
		}
		if (!wait_ms)
			return;
		start = 0;
		ret = wait_queue(t, entries, sources, (int)wait_ms);
		wait_ms = 0;
		if (ret > 0) {
			fill_all(t, entries, sources, 1);
		} else if (ret == -FI_EAVAIL) {
			if (fill_error(t, &t->completions[t->reaped]))
				t->reaped++;
		} else if (ret != 0 && ret != -FI_EAGAIN && ret != -FI_EINTR &&
			   ret != -FI_ECANCELED) {
			// sockets says canceled of a wait that fi_cq_signal has ended.
			t->error = (int)ret;
			return;
		}
	}
}
