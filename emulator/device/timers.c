#include "timers.h"

#include <stdlib.h>

static void put(struct timers *all, struct timer *timer, uint32_t place)
{
	all->heap[place - 1] = timer;
	timer->place = place;
}

static void rise(struct timers *all, struct timer *timer, uint32_t place)
{
	while (place > 1 && all->heap[place / 2 - 1]->at > timer->at) {
		put(all, all->heap[place / 2 - 1], place);
		place /= 2;
	}
	put(all, timer, place);
}

static void sink(struct timers *all, struct timer *timer, uint32_t place)
{
	for (;;) {
		uint32_t child = 2 * place;

		if (child > all->count)
			break;
		if (child < all->count && all->heap[child]->at < all->heap[child - 1]->at)
			child++;
		if (all->heap[child - 1]->at >= timer->at)
			break;
		put(all, all->heap[child - 1], place);
		place = child;
	}
	put(all, timer, place);
}

bool timers_set(struct timers *all, struct timer *timer, uint64_t at)
{
	if (timer->place) {
		bool later = at > timer->at;

		timer->at = at;
		if (later)
			sink(all, timer, timer->place);
		else
			rise(all, timer, timer->place);
		return true;
	}
	if (all->count == all->room) {
		uint32_t room = all->room ? 2 * all->room : 256;
		struct timer **heap = realloc(all->heap, room * sizeof(*heap));

		if (!heap)
			return false;
		all->heap = heap;
		all->room = room;
	}
	timer->at = at;
	rise(all, timer, ++all->count);
	return true;
}

void timers_cancel(struct timers *all, struct timer *timer)
{
	uint32_t place = timer->place;
	struct timer *last;

	if (!place)
		return;
	timer->place = 0;
	last = all->heap[--all->count];
	if (last == timer)
		return;
	if (place > 1 && all->heap[place / 2 - 1]->at > last->at)
		rise(all, last, place);
	else
		sink(all, last, place);
}

uint64_t timers_next(const struct timers *all)
{
	return all->count ? all->heap[0]->at : UINT64_MAX;
}

struct timer *timers_take(struct timers *all, uint64_t now)
{
	struct timer *first;

	if (!all->count || all->heap[0]->at > now)
		return NULL;
	first = all->heap[0];
	timers_cancel(all, first);
	return first;
}

void timers_free(struct timers *all)
{
	free(all->heap);
	*all = (struct timers){0};
}
