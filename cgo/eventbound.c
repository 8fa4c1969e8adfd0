//go:build linux

#include "eventbound.h"
#include "counted.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// The provider efa puts an error into the event queue of an endpoint for each packet that it
// can make nothing of, and anybody can send those. It does so by fi_eq_write, calls abort
// where that fails, and has memory for each until it is read.

struct bound {
	struct fi_ops_eq *own;
	uint64_t most, unread, dropped;
	struct fi_ops_eq ops; // of the queue, from now on. A newer libfabric has more of them
};

static ssize_t write_if_few(struct fid_eq *eq, uint32_t event, const void *buf,
			    size_t len, uint64_t flags);

static struct bound *bound_of(const struct fid_eq *eq)
{
	if (eq->ops->write != write_if_few)
		return NULL;
	return (struct bound *)((char *)eq->ops - offsetof(struct bound, ops));
}

static ssize_t write_if_few(struct fid_eq *eq, uint32_t event, const void *buf,
			    size_t len, uint64_t flags)
{
	struct bound *b = bound_of(eq);
	ssize_t ret;

	// What a program writes has no flags, and the event of an error has: one of libfabric's.
	if (!flags || len != sizeof(struct fi_eq_err_entry))
		return b->own->write(eq, event, buf, len, flags);
	if (__atomic_add_fetch(&b->unread, 1, __ATOMIC_RELAXED) > b->most) {
		__atomic_sub_fetch(&b->unread, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&b->dropped, 1, __ATOMIC_RELAXED);
		return (ssize_t)len;
	}
	ret = b->own->write(eq, event, buf, len, flags);
	if (ret < 0)
		__atomic_sub_fetch(&b->unread, 1, __ATOMIC_RELAXED);
	return ret;
}

int weft_eq_bound(struct fid_eq *eq, uint64_t most)
{
	size_t size = eq->ops->size;
	struct bound *b = weft_take(WEFT_FOR_EVENTS, sizeof *b + size);

	if (!b)
		return -FI_ENOMEM;
	b->own = eq->ops;
	b->most = most;
	memcpy((char *)b + offsetof(struct bound, ops), eq->ops, size);
	b->ops.write = write_if_few;
	eq->ops = &b->ops;
	return 0;
}

void weft_eq_error_read(struct fid_eq *eq)
{
	struct bound *b = bound_of(eq);
	uint64_t unread;

	if (!b)
		return;
	unread = __atomic_load_n(&b->unread, __ATOMIC_RELAXED);
	// Some errors come by another way.
	while (unread && !__atomic_compare_exchange_n(&b->unread, &unread, unread - 1, 1,
						      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

uint64_t weft_eq_dropped(const struct fid_eq *eq)
{
	const struct bound *b = bound_of(eq);

	return b ? __atomic_load_n(&b->dropped, __ATOMIC_RELAXED) : 0;
}

int weft_eq_close(struct fid_eq *eq)
{
	struct bound *b = bound_of(eq);
	int ret = fi_close(&eq->fid);

	if (!ret)
		weft_give(WEFT_FOR_EVENTS, b);
	return ret;
}
