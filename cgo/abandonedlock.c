//go:build linux

#define _GNU_SOURCE
#include "abandonedlock.h"
#include "mapped.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// In libfabric 1, the files of shm have a spin lock each, which peers hold while they copy. A
// process that is killed meanwhile leaves it locked, and whoever wants it then, the file's owner
// to read its queue, or another peer, turns round in it for ever. So libfabric gets another
// pthread_spin_lock, which takes a lock away from a process that is no more.
//
// Nobody holds it if it had one and the same holder for a while, and of all threads of all
// processes that have the file mapped, each sleeps or has run its own code meanwhile: who holds it
// is in the kernel, copying, but for microseconds, or does not run.

// How often a lock is looked at before others are let run, and how long it has one holder.
#define LOOKS 1000
#define PATIENCE_NS 500000000ull
#define THREADS 16384

struct file {
	unsigned major, minor;
	unsigned long inode;
};

// How long a thread has run, in ticks: its own code, and the kernel's.
struct thread {
	pid_t id;
	unsigned long own, kernel;
};

struct threads {
	size_t count;
	struct thread all[THREADS];
};

static pthread_spinlock_t fresh, held;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// is_gone says whether what could not be opened belongs to nobody who has a file mapped: to a
// process or a thread that has ended, or to another user's.
static int is_gone(void)
{
	return errno == ENOENT || errno == ESRCH || errno == EACCES;
}

// maps says whether a process has a file mapped, as it may if that cannot be seen, or, with a
// place, which file it has there, shared.
static int maps(const char *process, struct file *file, const void *place)
{
	char path[64], line[512], mode[5];
	unsigned long begin, end;
	struct file f;
	int found = 0;
	FILE *in;

	snprintf(path, sizeof path, "/proc/%.20s/maps", process);
	in = fopen(path, "re");
	if (!in)
		return !is_gone() && !place;
	while (!found && fgets(line, sizeof line, in)) {
		if (sscanf(line, "%lx-%lx %4s %*x %x:%x %lu", &begin, &end, mode, &f.major,
			   &f.minor, &f.inode) != 6 || mode[3] != 's' || !f.inode)
			continue;
		if (place)
			found = (uintptr_t)place >= begin && (uintptr_t)place < end;
		else
			found = f.inode == file->inode && f.major == file->major && f.minor == file->minor;
		if (found)
			*file = f;
	}
	fclose(in);
	return found;
}

// has_run says whether a thread has run its own code for a good part of the time since before.
// The kernel guesses which part it was, from samples.
static int has_run(const struct thread *before, const struct thread *now)
{
	unsigned long own = now->own - before->own, kernel = now->kernel - before->kernel;

	return own >= 2 && own >= kernel / 4;
}

// may_hold says whether a thread may have been holding a lock since before, and notes how far it
// is in now. What there was no room for may.
static int may_hold(const char *process, const char *thread, const struct threads *before,
		    struct threads *now)
{
	char path[96], line[512], *rest;
	struct thread t = { .id = atoi(thread) };
	char state;
	size_t i;
	FILE *in;
	int read;

	snprintf(path, sizeof path, "/proc/%.20s/task/%.20s/stat", process, thread);
	in = fopen(path, "re");
	if (!in)
		return !is_gone();
	rest = fgets(line, sizeof line, in);
	fclose(in);
	// The name in front may have anything in it but this after it.
	rest = rest ? strrchr(line, ')') : NULL;
	read = rest ? sscanf(rest, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			    &state, &t.own, &t.kernel) : 0;
	if (read != 3 || now->count == THREADS)
		return 1;
	now->all[now->count++] = t;
	if (state == 'S' || state == 'Z' || state == 'X')
		return 0;
	for (i = 0; i < before->count; i++)
		if (before->all[i].id == t.id)
			return !has_run(&before->all[i], &t);
	return 1;
}

// any_may_hold says whether any other thread may have been holding a lock of the file.
static int any_may_hold(struct file *file, const struct threads *before, struct threads *now)
{
	DIR *processes = opendir("/proc"), *threads;
	struct dirent *process, *thread;
	char path[64];
	int may = 0;

	now->count = 0;
	if (!processes)
		return 1;
	while ((process = readdir(processes))) {
		if (!isdigit((unsigned char)process->d_name[0]) || !maps(process->d_name, file, NULL))
			continue;
		snprintf(path, sizeof path, "/proc/%.20s/task", process->d_name);
		threads = opendir(path);
		may |= !threads && !is_gone();
		while (threads && (thread = readdir(threads)))
			if (isdigit((unsigned char)thread->d_name[0]) &&
			    atoi(thread->d_name) != syscall(SYS_gettid))
				may |= may_hold(process->d_name, thread->d_name, before, now);
		if (threads)
			closedir(threads);
	}
	closedir(processes);
	return may;
}

// wait_for takes a lock that somebody has.
static void wait_for(pthread_spinlock_t *l)
{
	// Unlocking overwrites it: as long as it is there, the lock has one and the same holder.
	const int mark = held + (held - fresh) * (int)(1000 + syscall(SYS_gettid) % 1000000);
	struct threads *before = NULL, *after = NULL;
	int looks, value, last = held, shared = 1;
	uint64_t since = now();
	struct file file;

	while (pthread_spin_trylock(l)) {
		for (looks = 0, value = fresh + 1; looks < LOOKS && value != fresh; looks++)
			value = __atomic_load_n(l, __ATOMIC_RELAXED);
		if (value == fresh)
			continue;
		sched_yield();
		if (value != last) {
			last = value;
			since = now();
		}
		if (!shared || now() - since < PATIENCE_NS)
			continue;
		if (!before) {
			shared = maps("self", &file, (const void *)l);
			before = shared ? calloc(1, sizeof *before) : NULL;
			after = shared ? calloc(1, sizeof *after) : NULL;
			shared = before && after;
			continue;
		}
		since = now();
		if (value != mark) {
			if (__atomic_compare_exchange_n(l, &value, mark, 0, __ATOMIC_RELAXED,
							__ATOMIC_RELAXED)) {
				before->count = 0;
				any_may_hold(&file, before, after);
				*before = *after;
				last = mark;
			}
			continue;
		}
		if (!any_may_hold(&file, before, after) &&
		    __atomic_compare_exchange_n(l, &value, held, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			break;
	}
	free(before);
	free(after);
}

static int lock_patiently(pthread_spinlock_t *l)
{
	int looks;

	for (looks = 0; looks < LOOKS; looks++)
		if (__atomic_load_n(l, __ATOMIC_RELAXED) == fresh && !pthread_spin_trylock(l))
			return 0;
	wait_for(l);
	return 0;
}

// table is where a table of a library is: the loader may have added where the library is, or not.
static const void *table(const struct dl_phdr_info *library, ElfW(Addr) value)
{
	return (const void *)(value < library->dlpi_addr ? value + library->dlpi_addr : value);
}

// give has a word of a library say where this file's pthread_spin_lock is. The loader has taken
// the right to write there away where the library asks for that (PT_GNU_RELRO).
static int give(const struct dl_phdr_info *library, char *word)
{
	int (*const ours)(pthread_spinlock_t *) = lock_patiently;
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	char *begin = (char *)((uintptr_t)word & ~(page - 1));
	size_t length = (size_t)(word + sizeof ours - begin);
	int i, relro = 0;

	for (i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &library->dlpi_phdr[i];

		relro |= h->p_type == PT_GNU_RELRO &&
			 (uintptr_t)word - library->dlpi_addr - h->p_vaddr < h->p_memsz;
	}
	if (relro && mprotect(begin, length, PROT_READ | PROT_WRITE))
		return 0;
	__atomic_store_n((uintptr_t *)word, (uintptr_t)ours, __ATOMIC_RELEASE);
	if (relro)
		mprotect(begin, length, PROT_READ);
	return 1;
}

// give_to does so in the table of what libfabric calls elsewhere, and says whether it was there.
static int give_to(struct dl_phdr_info *library, size_t size, void *code)
{
	const ElfW(Dyn) *d = NULL;
	const ElfW(Sym) *symbols = NULL;
	const ElfW(Rela) *calls = NULL;
	const char *strings = NULL;
	size_t i, count = 0;
	int given = 0;

	(void)size;
	if (!weft_has(library, code, 1, PF_X))
		return 0;
	for (i = 0; i < library->dlpi_phnum; i++)
		if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			symbols = table(library, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			strings = table(library, d->d_un.d_ptr);
		else if (d->d_tag == DT_JMPREL)
			calls = table(library, d->d_un.d_ptr);
		else if (d->d_tag == DT_PLTRELSZ)
			count = d->d_un.d_val / sizeof *calls;
		else if (d->d_tag == DT_PLTREL && d->d_un.d_val != DT_RELA)
			return 0;
	}
	for (i = 0; calls && symbols && strings && i < count; i++)
		if (!strcmp(strings + symbols[ELF64_R_SYM(calls[i].r_info)].st_name, "pthread_spin_lock"))
			given |= give(library, (char *)library->dlpi_addr + calls[i].r_offset);
	return given;
}

static int ret = -1;

static void break_locks(void)
{
	pthread_spinlock_t l;

	pthread_spin_init(&l, PTHREAD_PROCESS_PRIVATE);
	fresh = l;
	pthread_spin_lock(&l);
	held = l;
	pthread_spin_unlock(&l);
	pthread_spin_destroy(&l);
	if (dl_iterate_phdr(give_to, dlsym(RTLD_DEFAULT, "fi_getinfo")))
		ret = 0;
}

int weft_break_locks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, break_locks);
	return ret;
}
