/* The engine is the hardware of all devices of the process: one lock, the queue
 * pairs, their timers, and a thread that makes progress when the application
 * does not.
 *
 * An application that polls does the engine's work itself, in poll: that is the
 * shortest way. The thread then only looks now and then whether it still does.
 * Otherwise the thread blocks until a packet or a timer is due, and costs
 * nothing. */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "timers.h"

struct queue_pair;

void engine_lock(void);

/* engine_unlock also wakes the thread if it would sleep past the next timer. */
void engine_unlock(void);

/* engine_now is the monotonic clock, in nanoseconds. */
uint64_t engine_now(void);

/* The rest is called with the lock held. */

void engine_set(struct timer *timer, uint64_t at);
void engine_cancel(struct timer *timer);

/* engine_polled makes progress for an application that polls and finds nothing. */
void engine_polled(void);

/* engine_expect says that the application is about to block on a completion
 * channel: the thread takes over at once. */
void engine_expect(void);

/* engine_add takes a queue pair in, and starts the thread for the first. It
 * returns 0 or a positive errno. engine_remove lets go of one. Both between
 * engine_begin and engine_end, which hold the lock and, after the last queue
 * pair, end the thread. */
int engine_add(struct queue_pair *qp);
void engine_remove(struct queue_pair *qp);
void engine_begin(void);
void engine_end(void);

/* engine_each calls back for every queue pair. */
void engine_each(void (*call)(struct queue_pair *qp));

#endif
