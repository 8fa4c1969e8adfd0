// Takes turns with a queue whose looks take as long as it is told, as those that
// find what another core has written do. Ends with 1 and a line that says what was
// wrong if the rest between two looks does not follow, or leaves its bounds, or if
// a turn that finds nothing does not end.
#include "../../cgo/pause.h"
#include "../../cgo/shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// libfabric's, of which nothing is linked.
const char *fi_strerror(int number)
{
	return strerror(number);
}

// Plenty: a look in 64 turns is timed, and ten steps lead from one bound to the
// other. A machine that interrupts most looks has some quick ones yet.
enum { TURNS = 1000000 };

static struct {
	int empty;     // looks of a turn that find nothing
	int64_t takes; // nanoseconds, of a look that finds something
	int looks;     // in this turn
} queue;

static ssize_t look(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	int64_t start = weft_now();

	if (queue.looks++ < queue.empty)
		return -FI_EAGAIN;
	while (queue.takes && weft_since(start) < queue.takes)
		;
	memset(buf, 0, sizeof(struct fi_cq_tagged_entry));
	*source = 0;
	return 1;
}

static struct fi_ops_cq calls = { .readfrom = look };

static void fail(const char *what, unsigned n)
{
	printf("%s (%u)\n", what, n);
	exit(1);
}

static void take_turn(struct weft_turn *t)
{
	queue.looks = 0;
	weft_take_turn((uintptr_t)t);
	if (t->rest_ns < WEFT_REST_NS || t->rest_ns > WEFT_REST_MOST_NS)
		fail("a rest is out of its bounds", t->rest_ns);
}

// Turns of which each look that finds something takes so long, behind some that do not.
static void take_turns(struct weft_turn *t, int empty, int64_t takes)
{
	t->spins = 10;
	queue.empty = empty;
	queue.takes = takes;
	for (int i = 0; i < 64 * 20; i++)
		take_turn(t);
}

// The looks of a turn that never finds anything.
static unsigned looks_for_nothing(struct weft_turn *t, uint32_t spins)
{
	t->spins = spins;
	queue.empty = 1 << 30;
	take_turn(t);
	if (t->reaped)
		fail("something was found in an empty queue", t->reaped);
	return (unsigned)queue.looks;
}

int main(void)
{
	static struct weft_turn turn;
	struct weft_completion completion;
	struct fid_cq cq;
	const uint32_t most = WEFT_REST_NS + (WEFT_REST_MOST_NS - WEFT_REST_NS) / 23 * 23;
	unsigned i, n;

	memset(&cq, 0, sizeof cq);
	cq.ops = &calls;
	turn.cq = &cq;
	turn.completions = &completion;
	turn.completion_limit = 1;
	turn.rest_ns = WEFT_REST_NS;
	for (i = 0; i < 10; i++)
		if ((n = looks_for_nothing(&turn, i)) != i + 1)
			fail("looks, with the shortest rest", n);

	take_turns(&turn, 1, 2000);
	if (turn.rest_ns < most)
		fail("the rest stayed short, for a core far away", turn.rest_ns);
	// Each rest takes as long as several short ones.
	n = looks_for_nothing(&turn, 1000);
	if (n != 1 + 1000 / (turn.rest_ns / WEFT_REST_NS))
		fail("looks, with the longest rest", n);
	n = looks_for_nothing(&turn, 1);
	if (n != 2)
		fail("looks, with one rest that is longer than asked for", n);

	// What finds something at once says nothing of where the peer is.
	take_turns(&turn, 0, 0);
	if (turn.rest_ns < most)
		fail("looks without a rest before them were counted", turn.rest_ns);

	queue.empty = 1;
	for (i = 0; i < TURNS && turn.rest_ns != WEFT_REST_NS; i++)
		take_turn(&turn);
	if (turn.rest_ns != WEFT_REST_NS)
		fail("the rest stayed long, for a core nearby", turn.rest_ns);
	take_turns(&turn, 1, 0);
	puts("ok");
	return 0;
}
