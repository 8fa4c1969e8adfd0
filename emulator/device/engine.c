#include "engine.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "counters.h"
#include "queue_pair.h"
#include "srd.h"

enum {
	QUEUE_PAIRS = 4096,
	EVENTS = 32,
	/* Polls between two looks of the thread that make the application one that
	 * polls all the time. */
	BUSY = 32,
};

/* How long the thread leaves progress to an application that polls. */
static const uint64_t nap = 1000000;

static struct {
	struct queue_pair *qps[QUEUE_PAIRS];
	int count, highest;
	struct timers timers;
	int epoll, wake; /* -1 while there are no queue pairs */
	bool running, stopping, napping;
	uint64_t asleep_until; /* 0: the thread is not asleep */
	uint64_t polls, polls_seen;
	pthread_t thread;
} engine = {.epoll = -1, .wake = -1};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Starting and ending the thread; taken before the lock. */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;

void engine_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void wake(void)
{
	uint64_t one = 1;

	engine.asleep_until = 0;
	if (write(engine.wake, &one, sizeof(one)) < 0)
		return; /* it is full: the thread will wake */
}

void engine_unlock(void)
{
	/* The thread may well be some microseconds late for a timer, but not
	 * without end. */
	if (engine.asleep_until && timers_next(&engine.timers) < engine.asleep_until)
		wake();
	pthread_mutex_unlock(&lock);
}

uint64_t engine_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void engine_set(struct timer *timer, uint64_t at)
{
	/* Without memory for a timer a packet is not repeated; that is then the
	 * least of the process's troubles. */
	(void)timers_set(&engine.timers, timer, at);
}

void engine_cancel(struct timer *timer)
{
	timers_cancel(&engine.timers, timer);
}

/* progress does what is due, and returns without waiting. */
static void progress(void)
{
	struct epoll_event events[EVENTS];
	struct timer *timer;
	uint64_t now;
	int n = epoll_wait(engine.epoll, events, EVENTS, 0);

	for (int i = 0; i < n; i++) {
		uint64_t id = events[i].data.u64;

		if (id >= QUEUE_PAIRS)
			control_ready((int)(id - QUEUE_PAIRS));
		else if (engine.qps[id])
			srd_drain(engine.qps[id], events[i].events & EPOLLERR);
	}
	if (!engine.timers.count)
		return;
	now = engine_now();
	while ((timer = timers_take(&engine.timers, now)))
		timer->fire(timer);
}

void engine_polled(void)
{
	engine.polls++;
	if (engine.running)
		progress();
}

void engine_expect(void)
{
	engine.polls_seen = engine.polls;
	if (engine.napping && engine.asleep_until)
		wake();
}

static void *run(void *unused)
{
	(void)unused;
	engine_lock();
	while (!engine.stopping) {
		struct pollfd wait[2] = {
			{.fd = engine.wake, .events = POLLIN},
			{.fd = engine.epoll, .events = POLLIN},
		};
		struct timespec time, *limit = NULL;
		uint64_t now, until, count;

		progress();
		engine.napping = engine.polls - engine.polls_seen >= BUSY;
		engine.polls_seen = engine.polls;
		now = engine_now();
		until = timers_next(&engine.timers);
		if (engine.napping && now + nap < until)
			until = now + nap;
		if (until != UINT64_MAX) {
			uint64_t left = until > now ? until - now : 0;

			time = (struct timespec){.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
			limit = &time;
		}
		engine.asleep_until = until;
		pthread_mutex_unlock(&lock);
		ppoll(wait, engine.napping ? 1 : 2, limit, NULL);
		if (wait[0].revents && read(engine.wake, &count, sizeof(count)) < 0)
			count = 0;
		engine_lock();
		engine.asleep_until = 0;
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void close_all(void)
{
	control_close();
	if (engine.epoll >= 0)
		close(engine.epoll);
	if (engine.wake >= 0)
		close(engine.wake);
	engine.epoll = engine.wake = -1;
	timers_free(&engine.timers);
}

static void before_fork(void)
{
	pthread_mutex_lock(&life);
	engine_lock();
}

static void in_parent(void)
{
	engine_unlock();
	pthread_mutex_unlock(&life);
}

/* The child of a fork has no hardware: its copies of the queue pairs are dead,
 * and the parent's sockets are none of its business. New ones work. */
static void in_child(void)
{
	engine.running = engine.stopping = engine.napping = false;
	engine.asleep_until = 0;
	for (int i = 0; i < engine.highest; i++) {
		if (engine.qps[i])
			queue_pair_abandon(engine.qps[i]);
		engine.qps[i] = NULL;
	}
	engine.count = engine.highest = 0;
	close_all();
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&life);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static int start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t every, before;
	int err;

	pthread_once(&once, watch_forks);
	engine.epoll = epoll_create1(EPOLL_CLOEXEC);
	engine.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (engine.epoll < 0 || engine.wake < 0) {
		err = errno;
		close_all();
		return err;
	}
	control_open(engine.epoll, QUEUE_PAIRS);
	/* Signals are for the application's threads. */
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	engine.stopping = false;
	err = pthread_create(&engine.thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		close_all();
		return err;
	}
	pthread_setname_np(engine.thread, "weft-efa");
	engine.running = true;
	return 0;
}

int engine_add(struct queue_pair *qp)
{
	struct epoll_event event = {.events = EPOLLIN};
	int err = 0, id = 0;

	if (!engine.running)
		err = start();
	if (err)
		return err;
	while (id < QUEUE_PAIRS && engine.qps[id])
		id++;
	if (id == QUEUE_PAIRS)
		return ENOMEM;
	event.data.u64 = (uint64_t)id;
	if (epoll_ctl(engine.epoll, EPOLL_CTL_ADD, qp->socket, &event))
		return errno;
	qp->id = id;
	engine.qps[id] = qp;
	engine.count++;
	if (id >= engine.highest)
		engine.highest = id + 1;
	return 0;
}

void engine_remove(struct queue_pair *qp)
{
	epoll_ctl(engine.epoll, EPOLL_CTL_DEL, qp->socket, NULL);
	engine.qps[qp->id] = NULL;
	engine.count--;
}

void engine_each(void (*call)(struct queue_pair *qp))
{
	for (int i = 0; i < engine.highest; i++)
		if (engine.qps[i])
			call(engine.qps[i]);
}

void engine_begin(void)
{
	pthread_mutex_lock(&life);
	engine_lock();
}

void engine_end(void)
{
	if (engine.running && !engine.count) {
		engine.stopping = true;
		wake();
		/* No queue pair comes meanwhile, that takes the same mutex. */
		pthread_mutex_unlock(&lock);
		pthread_join(engine.thread, NULL);
		engine_lock();
		engine.running = false;
		engine.highest = 0;
		close_all();
		counters_report(false);
	}
	engine_unlock();
	pthread_mutex_unlock(&life);
}
