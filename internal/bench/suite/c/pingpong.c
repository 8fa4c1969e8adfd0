#include "twin.h"

// One message each way in flight. The slots: 0 sends, 1 receives.
enum { SENDING, RECEIVING };

static void post_receive(struct port *port, const struct order *order)
{
	ssize_t ret;
	struct fi_cq_tagged_entry entries[BATCH];

	do {
		ret = fi_trecv(port->ep, buffer(port, order, RECEIVING), order->size,
			       port->desc, FI_ADDR_UNSPEC, DATA_TAG, 0,
			       &port->slots[RECEIVING]);
		if (ret == -FI_EAGAIN && poll_queue(port, entries))
			die("a completion where none can be", 0);
	} while (ret == -FI_EAGAIN);
	CHECK(ret);
}

// Posts the message, and says whether it has no completion to wait for.
static int post_send(struct port *port, const struct order *order, uint64_t value)
{
	unsigned char *buf = buffer(port, order, SENDING);
	struct fi_cq_tagged_entry entries[BATCH];
	ssize_t ret;

	put_number(buf, order->size, value);
	do {
		if (order->inject)
			ret = fi_tinject(port->ep, buf, order->size, port->peer,
					 DATA_TAG);
		else
			ret = fi_tsend(port->ep, buf, order->size, port->desc,
				       port->peer, DATA_TAG,
				       &port->slots[SENDING]);
		if (ret == -FI_EAGAIN && poll_queue(port, entries))
			die("a completion where none can be", 0);
	} while (ret == -FI_EAGAIN);
	CHECK(ret);
	return order->inject;
}

static void await(struct port *port, const struct order *order, int sent,
		  int received)
{
	struct fi_cq_tagged_entry entries[BATCH];

	while (!sent || !received) {
		int n = read_queue(port, entries);

		for (int i = 0; i < n; i++) {
			const struct slot *slot = entries[i].op_context;

			if (slot->index == SENDING)
				sent++;
			else if (entries[i].len == order->size)
				received++;
			else
				die("a message of another length", 0);
		}
		if (sent > 1 || received > 1)
			die("a completion too many", 0);
	}
}

static void expect(struct port *port, const struct order *order, uint64_t value)
{
	if (!has_number(buffer(port, order, RECEIVING), order->size, value))
		die("a message that is not the one expected", 0);
}

// The answer to a message is its number, inverted. The next receive is posted
// after the answer, off the critical path: whatever comes early waits in the
// provider until the queue is read.
struct times pingpong(struct port *port, const struct order *order)
{
	uint64_t total = order->warmup + order->count, i;
	struct times times = {0};
	struct stopwatch watch;

	if (!order->first)
		post_receive(port, order);
	wait_for_go();
	if (!order->first) {
		await(port, order, 1, 0);
		for (i = 0; i < total; i++) {
			int sent;

			expect(port, order, i);
			sent = post_send(port, order, ~i);
			if (i + 1 < total)
				post_receive(port, order);
			await(port, order, sent, i + 1 == total);
		}
	} else {
		plan_stopwatch(&watch, order, PINGPONG_PART);
		for (i = 0; i < total; i++) {
			int sent;

			if (i == watch.next)
				mark_time(&watch);
			sent = post_send(port, order, i);
			post_receive(port, order);
			await(port, order, sent, 0);
			expect(port, order, ~i);
		}
		if (i == watch.next)
			mark_time(&watch);
		stop_stopwatch(&watch, 2, &times);
	}
	return times;
}
