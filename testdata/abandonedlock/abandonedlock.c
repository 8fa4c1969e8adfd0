// Takes a lock in shared memory that another process has, which then ends, stays stopped, sleeps or
// is in the kernel, while others have the memory mapped and sleep, or run, or want the lock, too. Ends
// with 1 and a line that says what was wrong if a lock is taken away from a process that is still
// there, or is not taken when its holder is no more.
#define _GNU_SOURCE
#include "../../cgo/abandonedlock.c"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

static struct memory {
	pthread_spinlock_t lock;
	volatile int ready, taken;
} *shared;

static void stop(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf("\n");
	exit(1);
}

static void sleeps(void)
{
	pause();
}

static void runs(void)
{
	for (;;)
		__asm__ volatile("" ::: "memory");
}

static void holds(void)
{
	lock_patiently(&shared->lock);
	shared->ready = 1;
	pause();
}

static void tries(void)
{
	if (try_lock(&shared->lock))
		stop("try_lock did not take a lock that is free");
	if (try_lock(&shared->lock) != EBUSY)
		stop("try_lock took a lock that is not free");
	shared->ready = 1;
	pause();
}

// holds_plainly is a holder without weft.
static void holds_plainly(void)
{
	pthread_spin_lock(&shared->lock);
	shared->ready = 1;
	pause();
}

static void stops(void)
{
	lock_patiently(&shared->lock);
	shared->ready = 1;
	raise(SIGSTOP);
	_exit(0);
}

// copies stays in the kernel with the lock, as whoever copies a lot.
static void copies(void)
{
	const size_t size = 64 << 20;
	char *to = malloc(size), *from = malloc(size);
	struct iovec here = { to, size }, there = { from, size };

	memset(from, 1, size);
	memset(to, 1, size);
	lock_patiently(&shared->lock);
	shared->ready = 1;
	while (process_vm_readv(getpid(), &here, 1, &there, 1, 0) > 0)
		;
	_exit(0);
}

static void takes(void)
{
	lock_patiently(&shared->lock);
	__atomic_add_fetch(&shared->taken, 1, __ATOMIC_RELAXED);
	pthread_spin_unlock(&shared->lock);
	_exit(0);
}

// waits wants the lock as a process without weft does.
static void waits(void)
{
	pthread_spin_lock(&shared->lock);
	__atomic_add_fetch(&shared->taken, 1, __ATOMIC_RELAXED);
	pthread_spin_unlock(&shared->lock);
	_exit(0);
}

static pid_t begin(void (*what)(void))
{
	pid_t child = fork();

	if (child < 0)
		stop("fork failed");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		what();
		_exit(0);
	}
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

// await waits for a condition for as long as a busy machine may need.
#define await(condition, what)                                                                     \
	do {                                                                                       \
		uint64_t limit = now() + 60000000000ull;                                           \
                                                                                                   \
		while (!(condition)) {                                                             \
			if (now() > limit)                                                         \
				stop("%s", what);                                                  \
			usleep(1000);                                                              \
		}                                                                                  \
	} while (0)

static void map(const char *path, int create)
{
	int file = open(path, O_RDWR | (create ? O_CREAT | O_TRUNC : 0), 0600);

	if (file < 0 || (create && ftruncate(file, 4096)))
		stop("%s cannot be opened", path);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (shared == MAP_FAILED)
		stop("%s cannot be mapped", path);
	close(file);
}

#define TAKERS 8

// see_kept gives those that wait time for many looks.
static void see_kept(const char *name)
{
	usleep(50 * PATIENCE_NS / 1000);
	if (shared->taken)
		stop("%s: the lock was taken", name);
}

static const struct {
	const char *name;
	void (*hold)(void);
	size_t takers, waiters;
	int lives; // until somebody else may have the lock
} cases[] = {
	{ "killed", holds, 1, 0, 0 },
	{ "killed, and several want it", holds, TAKERS, 0, 0 },
	{ "killed, and others wait without weft", holds, 1, 3, 0 },
	{ "killed, had tried", tries, 1, 0, 0 },
	{ "stopped", stops, 2, 0, 1 },
	{ "copying", copies, 2, 0, 1 },
	{ "sleeping", holds, 2, 3, 1 },
};

static void try_case(size_t i)
{
	const size_t count = cases[i].takers + cases[i].waiters;
	pid_t holder, all[2 * TAKERS];
	size_t k;

	shared->ready = shared->taken = 0;
	holder = begin(cases[i].hold);
	await(shared->ready, "nobody has the lock");
	if (!cases[i].lives)
		end(holder);
	for (k = 0; k < count; k++)
		all[k] = begin(k < cases[i].takers ? takes : waits);
	if (cases[i].lives) {
		see_kept(cases[i].name);
		end(holder);
	}
	await((size_t)shared->taken == count, cases[i].name);
	for (k = 0; k < count; k++)
		waitpid(all[k], NULL, 0);
	if (pthread_spin_trylock(&shared->lock))
		stop("%s: the lock was not given back", cases[i].name);
	pthread_spin_unlock(&shared->lock);
}

// try_plain has a holder without weft, whose lock nobody takes before it unlocks.
static void try_plain(void)
{
	pid_t holder, taker;

	shared->ready = shared->taken = 0;
	holder = begin(holds_plainly);
	await(shared->ready, "nobody has the lock");
	end(holder);
	taker = begin(takes);
	see_kept("without weft");
	pthread_spin_unlock(&shared->lock);
	await(shared->taken, "without weft, unlocked");
	waitpid(taker, NULL, 0);
}

int main(int argc, char **argv)
{
	pid_t others[2];
	size_t i;

	if (argc != 2)
		stop("abandonedlock FILE");
	break_locks();
	map(argv[1], 1);
	pthread_spin_init(&shared->lock, PTHREAD_PROCESS_SHARED);
	others[0] = begin(sleeps);
	others[1] = begin(runs);
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		try_case(i);
	try_plain();
	for (i = 0; i < 2; i++)
		end(others[i]);
	printf("ok\n");
	return 0;
}
