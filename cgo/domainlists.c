//go:build linux

#define _GNU_SOURCE
#include "domainlists.h"
#include "calls.h"
#include "innerendpoint.h"
#include "mapped.h"
#include "verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>

// From libfabric 2 on, efa has what is to be sent, and peers that are waited for, in lists of the domain,
// which every poll goes through. Until 2.2, fi_close of an endpoint frees what is its own there and
// leaves it in the lists: of a message that is to be delivered, or of a write or a read in pieces, the
// process ends when another endpoint is polled (libfabric's issue 10974). So it is taken out when fi_close
// has the device end its queue pair: nothing is added from then on, and nothing has been freed yet.

struct list {
	struct list *next, *prev;
};

// lock is what libfabric has for those lists. Where it has none, others do not use the domain meanwhile.
struct lock {
	int kind; // 0: the first of these
	pthread_mutex_t mutex;
	void (*take)(pthread_mutex_t *mutex), (*give)(pthread_mutex_t *mutex);
};

// Where a domain has its lock. 0: not known.
static ptrdiff_t lock_at;

static int (*destroy)(struct verbs_qp *pair);

static _Thread_local struct fid *closing;

// FURTHEST is more than there is in front of what is in a list, to the pointer to the endpoint.
#define FURTHEST 1024

// Where a domain has its lists, which are all empty before its first endpoint is enabled.
#define MOST_LISTS 16
static struct {
	ptrdiff_t at[MOST_LISTS];
	int count; // 0: not known
} lists;

static struct fid *member(const struct weft_looks *l, const struct fid *object, size_t fclass)
{
	size_t size = malloc_usable_size((void *)object), i;
	struct fid *word;

	for (i = sizeof *object; i + sizeof word <= size; i += sizeof word) {
		memcpy(&word, (const char *)object + i, sizeof word);
		if (weft_is_inner(l, object, word, fclass))
			return word;
	}
	return NULL;
}

struct code {
	void *before, *take, *give;
};

// begins_code says of three words in a row whether two are code of a library, and the one before is not.
static int begins_code(struct dl_phdr_info *library, size_t size, void *argument)
{
	const struct code *c = argument;

	(void)size;
	return weft_has(library, c->take, 1, PF_X) && weft_has(library, c->give, 1, PF_X) &&
	       !weft_has(library, c->before, 1, PF_X);
}

int weft_lists_polled(const struct fid *object)
{
	struct weft_looks l;
	struct fid *domain;
	struct lock *lock;
	size_t size, i;
	ptrdiff_t held = 0;
	int count = 0;
	struct code code;

	if (!destroy || __atomic_load_n(&lock_at, __ATOMIC_RELAXED))
		return 1;
	if (weft_begin_looks(&l))
		return 0;
	domain = member(&l, object, FI_CLASS_DOMAIN);
	weft_end_looks(&l);
	if (!domain)
		return 1;
	size = malloc_usable_size(domain);
	for (i = sizeof *domain; i + sizeof *lock <= size; i += _Alignof(struct lock)) {
		lock = (struct lock *)((char *)domain + i);
		memcpy(&code, (char *)&lock->take - sizeof code.before, sizeof code);
		if (lock->kind || !dl_iterate_phdr(begins_code, &code))
			continue;
		// It is this thread that has it, or another of the domain's, which is seen the next time.
		if (pthread_mutex_trylock(&lock->mutex) == EBUSY) {
			held = (ptrdiff_t)i;
			count++;
		} else {
			pthread_mutex_unlock(&lock->mutex);
		}
	}
	if (count == 1)
		__atomic_store_n(&lock_at, held, __ATOMIC_RELAXED);
	return count <= 1;
}

// owner finds the endpoint that what is in a list belongs to: a pointer to it is in front, and none to another
// is between.
static const struct fid *owner(const struct weft_looks *l, const struct list *entry)
{
	const struct fid *word, *found = NULL;
	struct fid its;
	size_t back;

	for (back = sizeof word; !found && back <= FURTHEST; back += sizeof word) {
		if (!weft_look(l, (const char *)entry - back, &word, sizeof word))
			break;
		if (word == closing ||
		    ((uintptr_t)word >= 4096 && (uintptr_t)word % _Alignof(struct fid) == 0 &&
		     weft_look(l, word, &its, sizeof its) && its.fclass == FI_CLASS_EP &&
		     its.ops == closing->ops))
			found = word;
	}
	return found;
}

void weft_lists_guarded(const struct weft_looks *l, const struct fid *object)
{
	struct fid *domain;
	struct list *head;
	size_t size, i;
	int count = 0;

	if (!destroy || lists.count || !(domain = member(l, object, FI_CLASS_DOMAIN)))
		return;
	size = malloc_usable_size(domain);
	for (i = sizeof *domain; i + sizeof *head <= size && count < MOST_LISTS; i += sizeof(void *)) {
		head = (struct list *)((char *)domain + i);
		if (head->next == head && head->prev == head)
			lists.at[count++] = (ptrdiff_t)i;
	}
	__atomic_store_n(&lists.count, count, __ATOMIC_RELEASE);
}

static void empty(const struct weft_looks *l, struct fid *domain)
{
	int i, count = __atomic_load_n(&lists.count, __ATOMIC_ACQUIRE);
	struct list *head, *entry, *next;

	for (i = 0; i < count; i++) {
		head = (struct list *)((char *)domain + lists.at[i]);
		// A domain of datagrams has none.
		for (entry = head->next; entry && entry != head; entry = next) {
			next = entry->next;
			if (owner(l, entry) != closing)
				continue;
			entry->prev->next = entry->next;
			entry->next->prev = entry->prev;
			// A later version takes it out once more.
			entry->next = entry->prev = entry;
		}
	}
}

static int empty_and_destroy(struct verbs_qp *pair)
{
	const ptrdiff_t at = __atomic_load_n(&lock_at, __ATOMIC_RELAXED);
	struct weft_looks l;
	struct fid *domain;
	struct lock *lock;

	if (closing && !weft_begin_looks(&l)) {
		domain = member(&l, closing, FI_CLASS_DOMAIN);
		lock = domain && at ? (struct lock *)((char *)domain + at) : NULL;
		if (lock && lock->kind)
			lock = NULL;
		if (lock)
			pthread_mutex_lock(&lock->mutex);
		if (domain)
			empty(&l, domain);
		if (lock)
			pthread_mutex_unlock(&lock->mutex);
		weft_end_looks(&l);
	}
	return destroy(pair);
}

// Until 2.2, an operation of which a packet has failed is taken out of the lists once more for each other packet
// of it that fails: what was beside it the first time is put together, which may be gone from the list, or make
// a ring of it that every poll goes round for ever. So what was taken out is in a list of its own.

// What is in the lists before libfabric hears of a failure. Of more, the rest is not looked after.
#define MOST_SEEN 512
static _Thread_local struct {
	struct list *entry, was;
} seen[MOST_SEEN];
static _Thread_local int seen_count;

void weft_lists_failing(const struct fid *object)
{
	int i, count = __atomic_load_n(&lists.count, __ATOMIC_ACQUIRE);
	struct list *head, *entry;
	struct weft_looks l;
	struct fid *domain;

	seen_count = 0;
	if (!destroy || !count || weft_begin_looks(&l))
		return;
	domain = member(&l, object, FI_CLASS_DOMAIN);
	weft_end_looks(&l);
	for (i = 0; domain && i < count; i++) {
		head = (struct list *)((char *)domain + lists.at[i]);
		for (entry = head->next; entry && entry != head && seen_count < MOST_SEEN; entry = entry->next) {
			seen[seen_count].entry = entry;
			seen[seen_count++].was = *entry;
		}
	}
}

void weft_lists_failed(void)
{
	struct list *entry;
	int i;

	for (i = 0; i < seen_count; i++) {
		entry = seen[i].entry;
		// What is taken out still points to what was beside it.
		if (entry->next == seen[i].was.next && entry->prev == seen[i].was.prev &&
		    entry->next->prev != entry && entry->prev->next != entry)
			entry->next = entry->prev = entry;
	}
	seen_count = 0;
}

static int ret = -1;

static void replace(void)
{
	static const struct weft_call ours = { "ibv_destroy_qp", (void (*)(void))empty_and_destroy };

	destroy = (int (*)(struct verbs_qp *))dlsym(RTLD_DEFAULT, "ibv_destroy_qp");
	if (destroy && weft_replace_calls(&ours, 1))
		ret = 0;
	else
		destroy = NULL;
}

int weft_empty_lists(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, replace);
	return ret;
}

void weft_lists_closing(struct fid *endpoint)
{
	closing = endpoint->fclass == FI_CLASS_EP ? endpoint : NULL;
}

void weft_lists_closed(void)
{
	closing = NULL;
}
