//go:build linux

#define _GNU_SOURCE
#include "abandonedlock.h"
#include "calls.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// In libfabric 1, the files of shm have a spin lock each, which peers hold while they copy. A
// process that is killed meanwhile leaves it locked, and whoever wants it then, the file's owner
// to read its queue, or another peer, turns round in it for ever. So libfabric gets other functions
// to take such a lock: a lock says which thread has it, and whoever waits takes it away from one that
// is no more.
//
// What it says is a value that the functions of the C library take for locked, too, as processes
// have that are without weft. Those leave nothing in a lock, and keep it, whatever becomes of them,
// as do processes of another namespace, whose threads cannot be seen.

// How often a lock is looked at at once, how long others are let run meanwhile, what is slept after
// that, and how often it is looked at whose it is.
#define LOOKS 1000
#define YIELDS_NS 1000000ull
#define SLEEP_US 100
#define PATIENCE_NS 20000000ull

// A lock has this many steps from its value of the C library: the namespace of the thread that has
// it, by a number that few share, and the thread. The lowest bits are for those that wait in the C
// library, each of which takes it one step further.
#define SLACK 3
#define THREAD_BITS 22 // the most that Linux has
#define NAMESPACES 63

static pthread_spinlock_t fresh, held;
static int namespace_number;
static __thread int own_value;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int value_of(int steps)
{
	return held + (held - fresh) * steps;
}

static int steps_of(int value)
{
	return (int)((unsigned)(value - held) * (unsigned)(held - fresh));
}

static int thread_of(int steps)
{
	return steps >> SLACK & ((1 << THREAD_BITS) - 1);
}

static int namespace_of(int steps)
{
	return steps >> (SLACK + THREAD_BITS);
}

// take takes a lock that has a value, and says whether that was so.
static int take(pthread_spinlock_t *l, int value)
{
	int thread;

	if (!own_value) {
		thread = (int)syscall(SYS_gettid);
		own_value = value_of((namespace_number << THREAD_BITS | thread) << SLACK);
	}
	return __atomic_compare_exchange_n(l, &value, own_value, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void forked(void)
{
	own_value = 0;
}

// is_gone says whether a thread of this process's namespace is no more.
static int is_gone(int thread)
{
	char path[64], line[512], *rest;
	FILE *in;

	if (syscall(SYS_tkill, thread, 0))
		return errno == ESRCH;
	snprintf(path, sizeof path, "/proc/%d/stat", thread);
	in = fopen(path, "re");
	if (!in)
		return 0;
	rest = fgets(line, sizeof line, in);
	fclose(in);
	// The name in front may have anything in it but this after it. What has ended stays until its
	// parent has asked for it.
	rest = rest ? strrchr(line, ')') : NULL;
	return rest && (rest[2] == 'Z' || rest[2] == 'X');
}

// is_shared says whether other processes have the memory, too.
static int is_shared(const void *place)
{
	char line[512], mode[5];
	unsigned long begin, end;
	FILE *in = fopen("/proc/self/maps", "re");
	int found = 0;

	while (in && !found && fgets(line, sizeof line, in))
		found = sscanf(line, "%lx-%lx %4s", &begin, &end, mode) == 3 && mode[3] == 's' &&
			(uintptr_t)place >= begin && (uintptr_t)place < end;
	if (in)
		fclose(in);
	return found;
}

// is_abandoned says whether the lock of a value is nobody's.
static int is_abandoned(int value)
{
	int steps = steps_of(value);

	return thread_of(steps) && namespace_of(steps) == namespace_number && is_gone(thread_of(steps));
}

// wait_for takes a lock that somebody has.
static void wait_for(pthread_spinlock_t *l)
{
	const uint64_t begin = now();
	uint64_t t, looked = begin;
	int looks, value, shared = -1;

	for (;;) {
		for (looks = 0; looks < LOOKS; looks++)
			if (__atomic_load_n(l, __ATOMIC_RELAXED) == fresh && take(l, fresh))
				return;
		t = now();
		if (t - begin < YIELDS_NS)
			sched_yield();
		else
			usleep(SLEEP_US);
		if (!shared || t - looked < PATIENCE_NS)
			continue;
		looked = t;
		if (shared < 0)
			shared = is_shared((const void *)l);
		value = __atomic_load_n(l, __ATOMIC_RELAXED);
		if (shared && value != fresh && is_abandoned(value) && take(l, value))
			return;
	}
}

static int lock_patiently(pthread_spinlock_t *l)
{
	int looks;

	for (looks = 0; looks < LOOKS; looks++)
		if (__atomic_load_n(l, __ATOMIC_RELAXED) == fresh && take(l, fresh))
			return 0;
	wait_for(l);
	return 0;
}

static int try_lock(pthread_spinlock_t *l)
{
	return take(l, fresh) ? 0 : EBUSY;
}

static int ret = -1;

static void break_locks(void)
{
	static const struct weft_call ours[] = {
		{ "pthread_spin_lock", (void (*)(void))lock_patiently },
		{ "pthread_spin_trylock", (void (*)(void))try_lock },
	};
	pthread_spinlock_t l;
	struct stat its;

	pthread_spin_init(&l, PTHREAD_PROCESS_PRIVATE);
	fresh = l;
	pthread_spin_lock(&l);
	held = l;
	pthread_spin_unlock(&l);
	pthread_spin_destroy(&l);
	if (abs(held - fresh) != 1 || stat("/proc/self/ns/pid", &its) || pthread_atfork(NULL, NULL, forked))
		return;
	namespace_number = 1 + (int)(its.st_ino % NAMESPACES);
	// Both functions, in one place each.
	if (weft_replace_calls(ours, 2) == 2)
		ret = 0;
}

int weft_break_locks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, break_locks);
	return ret;
}
