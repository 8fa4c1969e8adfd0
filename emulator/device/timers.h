/* Timers, ordered by time: a heap whose entries know their place. */
#ifndef TIMERS_H
#define TIMERS_H

#include <stdbool.h>
#include <stdint.h>

struct timer {
	uint64_t at; /* nanoseconds */
	uint32_t place; /* in the heap, from 1; 0 when not set */
	void (*fire)(struct timer *);
};

struct timers {
	struct timer **heap;
	uint32_t count, room;
};

/* timers_set sets or moves a timer. It is false if memory ran out and the timer
 * was not set before. */
bool timers_set(struct timers *all, struct timer *timer, uint64_t at);
void timers_cancel(struct timers *all, struct timer *timer);

/* timers_next is when the earliest is due, UINT64_MAX if none is set. */
uint64_t timers_next(const struct timers *all);

/* timers_take removes the earliest if it is due, and returns it. */
struct timer *timers_take(struct timers *all, uint64_t now);

void timers_free(struct timers *all);

#endif
