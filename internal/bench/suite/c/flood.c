#include "twin.h"

static void post_receive(struct port *port, const struct order *order,
			 uint64_t slot, uint64_t tag)
{
	ssize_t ret = fi_trecv(port->ep, buffer(port, order, slot), order->size,
			       port->desc, FI_ADDR_UNSPEC, tag, 0,
			       &port->slots[slot]);

	// As many receives as the window are no burden to any provider.
	CHECK(ret);
}

// Sends messages numbered from 0, with up to window in flight, and waits for
// the word that all have arrived.
static struct times send_all(struct port *port, const struct order *order)
{
	uint64_t total = order->warmup + order->count, next = 0, completed = 0;
	uint64_t window = order->window, end = window, free_count = window;
	uint64_t free_slots[WINDOW_LIMIT];
	struct fi_cq_tagged_entry entries[BATCH];
	int ended = 0;

	for (uint64_t i = 0; i < window; i++)
		free_slots[i] = window - 1 - i;
	post_receive(port, order, end, END_TAG);
	wait_for_go();
	while (completed < total || !ended) {
		int n;

		while (free_count && next < total) {
			uint64_t slot = free_slots[free_count - 1];
			ssize_t ret;

			put_number(buffer(port, order, slot), order->size, next);
			ret = fi_tsend(port->ep, buffer(port, order, slot),
				       order->size, port->desc, port->peer,
				       DATA_TAG, &port->slots[slot]);
			if (ret == -FI_EAGAIN)
				break;
			CHECK(ret);
			free_count--;
			next++;
		}
		// A refused post needs the queue to be read, and then another
		// try: to wait is right only for what is certain to come.
		if (!free_count || next == total || (port->block && next > completed))
			n = read_queue(port, entries);
		else
			n = poll_queue(port, entries);
		for (int i = 0; i < n; i++) {
			const struct slot *slot = entries[i].op_context;

			if (slot->index == end) {
				ended = 1;
				continue;
			}
			free_slots[free_count++] = slot->index;
			completed++;
		}
	}
	return (struct times){0};
}

static void send_end(struct port *port, const struct order *order)
{
	struct fi_cq_tagged_entry entries[BATCH];
	ssize_t ret;
	int n;

	do {
		ret = fi_tsend(port->ep, buffer(port, order, order->window),
			       order->size, port->desc, port->peer, END_TAG,
			       &port->slots[order->window]);
		if (ret == -FI_EAGAIN && poll_queue(port, entries))
			die("a completion where none can be", 0);
	} while (ret == -FI_EAGAIN);
	CHECK(ret);
	n = read_queue(port, entries);
	if (n != 1 || ((struct slot *)entries[0].op_context)->index != order->window)
		die("not the completion of the last message", 0);
}

// Keeps window receives posted. Messages match receives in the order of both,
// so a receive knows which number it is to get.
static struct times receive_all(struct port *port, const struct order *order)
{
	uint64_t total = order->warmup + order->count, posted, received = 0;
	uint64_t expected[WINDOW_LIMIT];
	struct fi_cq_tagged_entry entries[BATCH];
	struct stopwatch watch;
	struct times times;

	for (posted = 0; posted < order->window && posted < total; posted++) {
		expected[posted] = posted;
		post_receive(port, order, posted, DATA_TAG);
	}
	plan_stopwatch(&watch, order, flood_part(order));
	wait_for_go();
	while (received < total) {
		int n = read_queue(port, entries);

		for (int i = 0; i < n; i++) {
			uint64_t slot = ((struct slot *)entries[i].op_context)->index;

			if (entries[i].len != order->size ||
			    !has_number(buffer(port, order, slot), order->size, expected[slot]))
				die("a message that is not the one expected", 0);
			// The clock starts when the warm-up has arrived.
			if (++received == watch.next)
				mark_time(&watch);
			if (posted < total) {
				expected[slot] = posted++;
				post_receive(port, order, slot, DATA_TAG);
			}
		}
	}
	stop_stopwatch(&watch, 1, &times);
	send_end(port, order);
	return times;
}

struct times flood(struct port *port, const struct order *order)
{
	return order->first ? send_all(port, order) : receive_all(port, order);
}
