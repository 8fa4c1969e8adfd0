#include "twin.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

// As in stopwatch.go.
static const double percentiles[PERCENTILES] = {
	1, 10, 25, 50, 75, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.99, 100,
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// The parts have at least so many messages, or there is only one.
void plan_stopwatch(struct stopwatch *w, const struct order *order, uint64_t least)
{
	uint64_t most = order->each ? EACH_LIMIT : PARTS;

	w->count = order->count;
	w->parts = order->count / least;
	if (w->parts < 1)
		w->parts = 1;
	if (w->parts > most)
		w->parts = most;
	w->marks = malloc((w->parts + 1) * sizeof w->marks[0]);
	if (!w->marks)
		die("no memory for the marks of the stopwatch", 0);
	// So that it is there before the clock runs.
	memset(w->marks, 1, (w->parts + 1) * sizeof w->marks[0]);
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
	for (int i = 0; i < PERCENTILES; i++) {
		uint64_t at = (uint64_t)ceil(percentiles[i] / 100 * (double)w->parts);

		times->percentiles[i] = w->marks[at > 0 ? at - 1 : 0];
	}
	free(w->marks);
}
