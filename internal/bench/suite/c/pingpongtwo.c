#include "twin.h"

// A ping-pong of messages that go as two: the length under LENGTH_TAG | id, and
// the payload under PAYLOAD_TAG | id, as the messages of package efa do where
// both sides agreed to nothing better. The receives of both are posted before
// they come: the one of the length takes any id.
#define LENGTH_TAG (UINT64_C(1) << 32)
#define PAYLOAD_TAG (UINT64_C(1) << 33)
#define ANY_ID UINT64_C(0xffffffff)

enum { LENGTH_OUT, PAYLOAD_OUT, LENGTH_IN, PAYLOAD_IN };

// How many completions there were that nobody has waited for yet.
struct seen {
	int sent, received;
};

static void take(const struct order *order, const struct fi_cq_tagged_entry *entries,
		 int n, struct seen *seen)
{
	for (int i = 0; i < n; i++) {
		uint64_t index = ((const struct slot *)entries[i].op_context)->index;

		if (index == LENGTH_OUT || index == PAYLOAD_OUT)
			seen->sent++;
		else if (entries[i].len == (index == LENGTH_IN ? sizeof(int64_t) : order->size))
			seen->received++;
		else
			die("a message of another length", 0);
	}
}

// Makes room for a post that was refused.
static void make_room(struct port *port, const struct order *order, struct seen *seen)
{
	struct fi_cq_tagged_entry entries[BATCH];

	take(order, entries, poll_queue(port, entries), seen);
}

static void post_receives(struct port *port, const struct order *order,
			  uint64_t id, struct seen *seen)
{
	ssize_t ret;

	while ((ret = fi_trecv(port->ep, buffer(port, order, LENGTH_IN), sizeof(int64_t),
			       port->desc, FI_ADDR_UNSPEC, LENGTH_TAG, ANY_ID,
			       &port->slots[LENGTH_IN])) == -FI_EAGAIN)
		make_room(port, order, seen);
	CHECK(ret);
	while ((ret = fi_trecv(port->ep, buffer(port, order, PAYLOAD_IN), order->size,
			       port->desc, FI_ADDR_UNSPEC, PAYLOAD_TAG | (id & ANY_ID), 0,
			       &port->slots[PAYLOAD_IN])) == -FI_EAGAIN)
		make_room(port, order, seen);
	CHECK(ret);
}

static void post_sends(struct port *port, const struct order *order,
		       uint64_t id, uint64_t number, struct seen *seen)
{
	int64_t length = (int64_t)order->size;
	ssize_t ret;

	memcpy(buffer(port, order, LENGTH_OUT), &length, sizeof length);
	put_number(buffer(port, order, PAYLOAD_OUT), order->size, number);
	while ((ret = fi_tsend(port->ep, buffer(port, order, LENGTH_OUT), sizeof length,
			       port->desc, port->peer, LENGTH_TAG | (id & ANY_ID),
			       &port->slots[LENGTH_OUT])) == -FI_EAGAIN)
		make_room(port, order, seen);
	CHECK(ret);
	while ((ret = fi_tsend(port->ep, buffer(port, order, PAYLOAD_OUT), order->size,
			       port->desc, port->peer, PAYLOAD_TAG | (id & ANY_ID),
			       &port->slots[PAYLOAD_OUT])) == -FI_EAGAIN)
		make_room(port, order, seen);
	CHECK(ret);
}

static void await(struct port *port, const struct order *order, struct seen *seen,
		  int sent, int received)
{
	struct fi_cq_tagged_entry entries[BATCH];

	while (seen->sent < sent || seen->received < received)
		take(order, entries, read_queue(port, entries), seen);
	if (seen->sent > sent || seen->received > received)
		die("a completion too many", 0);
	*seen = (struct seen){0};
}

static void expect(struct port *port, const struct order *order, uint64_t number)
{
	int64_t length;

	memcpy(&length, buffer(port, order, LENGTH_IN), sizeof length);
	if (length != (int64_t)order->size ||
	    !has_number(buffer(port, order, PAYLOAD_IN), order->size, number))
		die("a message that is not the one expected", 0);
}

// As in pingpong.c: the answer is the number, inverted, and the next receives
// are posted after it.
struct times pingpong_of_two(struct port *port, const struct order *order)
{
	uint64_t total = order->warmup + order->count, i;
	struct times times = {0};
	struct seen seen = {0};
	struct stopwatch watch;

	if (!order->first)
		post_receives(port, order, 0, &seen);
	wait_for_go();
	if (!order->first) {
		await(port, order, &seen, 0, 2);
		for (i = 0; i < total; i++) {
			int more = i + 1 < total;

			expect(port, order, i);
			post_sends(port, order, i, ~i, &seen);
			if (more)
				post_receives(port, order, i + 1, &seen);
			await(port, order, &seen, 2, more ? 2 : 0);
		}
	} else {
		plan_stopwatch(&watch, order, PINGPONG_PART);
		for (i = 0; i < total; i++) {
			if (i == watch.next)
				mark_time(&watch);
			post_sends(port, order, i, i, &seen);
			post_receives(port, order, i, &seen);
			await(port, order, &seen, 2, 2);
			expect(port, order, ~i);
		}
		if (i == watch.next)
			mark_time(&watch);
		stop_stopwatch(&watch, 2, &times);
	}
	return times;
}
