#include "twin.h"

#include <stdlib.h>
#include <time.h>

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// The parts have at least so many messages, or there is only one.
void plan_stopwatch(struct stopwatch *w, const struct order *order, uint64_t least)
{
	w->count = order->count;
	w->parts = order->count / least;
	if (w->parts < 1)
		w->parts = 1;
	if (w->parts > PARTS)
		w->parts = PARTS;
	w->step = order->count / w->parts;
	w->marked = 0;
	w->next = order->warmup;
}

void mark_time(struct stopwatch *w)
{
	w->marks[w->marked++] = now();
	w->next = w->marked <= w->parts ? w->next + w->step : UINT64_MAX;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void stop_stopwatch(struct stopwatch *w, uint64_t per_message, struct times *times)
{
	uint64_t end = now();

	if (w->marked <= w->parts)
		die("the stopwatch was stopped too early", 0);
	times->elapsed = end - w->marks[0];
	times->operations = w->count * per_message;
	for (uint64_t i = 0; i < w->parts; i++)
		w->marks[i] = w->marks[i + 1] - w->marks[i];
	qsort(w->marks, w->parts, sizeof w->marks[0], compare);
	times->part = w->marks[w->parts / 2];
	times->part_operations = w->step * per_message;
}
