// Takes a lock in shared memory that another process has, which then ends, stays stopped, or is
// in the kernel, while others have the memory mapped and sleep, or run. Ends with 1 and a line
// that says what was wrong if a lock is taken away from a process that is still there, or is not
// taken when its holder is no more.
#define _GNU_SOURCE
#include "../../cgo/abandonedlock.c"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
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
	pthread_spin_lock(&shared->lock);
	shared->ready = 1;
	pause();
}

static void stops(void)
{
	pthread_spin_lock(&shared->lock);
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
	pthread_spin_lock(&shared->lock);
	shared->ready = 1;
	while (process_vm_readv(getpid(), &here, 1, &there, 1, 0) > 0)
		;
	_exit(0);
}

static void takes(void)
{
	lock_patiently(&shared->lock);
	shared->taken = getpid();
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

int main(int argc, char **argv)
{
	pid_t others[] = { 0, 0 }, holder, taker;
	size_t i;

	if (argc != 2)
		stop("abandonedlock FILE");
	break_locks();
	map(argv[1], 1);
	pthread_spin_init(&shared->lock, PTHREAD_PROCESS_SHARED);
	others[0] = begin(sleeps);
	others[1] = begin(runs);
	struct {
		const char *name;
		void (*hold)(void);
		int lives;
	} cases[] = {
		{ "killed", holds, 0 },
		{ "stopped", stops, 1 },
		{ "copying", copies, 1 },
	};
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		shared->ready = shared->taken = 0;
		holder = begin(cases[i].hold);
		await(shared->ready, "nobody has the lock");
		if (!cases[i].lives)
			end(holder);
		taker = begin(takes);
		if (cases[i].lives) {
			// Some rounds of looks.
			usleep(4 * PATIENCE_NS / 1000);
			if (shared->taken)
				stop("%s: the lock was taken", cases[i].name);
			end(holder);
		}
		await(shared->taken == taker, cases[i].name);
		waitpid(taker, NULL, 0);
		if (pthread_spin_trylock(&shared->lock))
			stop("%s: the lock was not given back", cases[i].name);
		pthread_spin_unlock(&shared->lock);
	}
	for (i = 0; i < 2; i++)
		end(others[i]);
	printf("ok\n");
	return 0;
}
