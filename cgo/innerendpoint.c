//go:build linux

#define _GNU_SOURCE
#include "innerendpoint.h"
#include "mapped.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// In libfabric 1, a reliable endpoint of efa has one of the device inside. fi_close closes that,
// which frees it, and then frees what a member of it points to: whoever has got that memory
// meanwhile, on another thread, has written something else there. So a copy is put into its
// place: the place is read anew when the inner one is closed.

struct inner {
	struct fi_ops ops; // of the inner one, until it is closed
	struct fi_ops *own;
	struct fid **place;
	struct fid *copy;
	int called;
	int kept; // the copy is in the place
};

// Where an endpoint has its inner one. 0: not known yet.
static ptrdiff_t offset;

static int closed(struct fid *fid)
{
	(void)fid;
	return 0;
}

static struct fi_ops closed_ops = { .size = sizeof(struct fi_ops), .close = closed };

static int close_and_keep(struct fid *fid)
{
	struct inner *i = (struct inner *)((char *)fid->ops - offsetof(struct inner, ops));
	size_t size = malloc_usable_size(fid);
	int ret;

	i->called = 1;
	fid->ops = i->own;
	i->copy = malloc(size);
	if (i->copy)
		memcpy(i->copy, fid, size);
	ret = i->own->close(fid);
	if (ret || !i->copy)
		return ret;
	i->copy->ops = &closed_ops;
	*i->place = i->copy;
	i->kept = 1;
	return 0;
}

int weft_is_inner(const struct weft_looks *l, const struct fid *endpoint, struct fid *word,
		  size_t fclass)
{
	struct fid fid;
	struct fi_ops ops;
	Dl_info of, its;

	return word != endpoint && (uintptr_t)word >= 4096 &&
	       (uintptr_t)word % _Alignof(struct fid) == 0 &&
	       weft_look(l, word, &fid, sizeof fid) && fid.fclass == fclass &&
	       weft_look(l, fid.ops, &ops, offsetof(struct fi_ops, bind)) &&
	       dladdr((void *)(uintptr_t)endpoint->ops->close, &of) &&
	       dladdr((void *)(uintptr_t)ops.close, &its) && of.dli_fbase == its.dli_fbase;
}

static struct fid **find(struct fid *endpoint)
{
	size_t size = malloc_usable_size(endpoint);
	ptrdiff_t known = __atomic_load_n(&offset, __ATOMIC_RELAXED);
	struct fid **place, **found = NULL;
	struct weft_looks l;

	if (weft_begin_looks(&l))
		return NULL;
	place = (struct fid **)((char *)endpoint + known);
	if (known && (size_t)known < size && weft_is_inner(&l, endpoint, *place, FI_CLASS_EP))
		found = place;
	// What libfabric allocates begins with the public part.
	for (place = (struct fid **)endpoint; !found && (char *)(place + 1) <= (char *)endpoint + size; place++)
		if (weft_is_inner(&l, endpoint, *place, FI_CLASS_EP))
			found = place;
	weft_end_looks(&l);
	if (found)
		__atomic_store_n(&offset, (char *)found - (char *)endpoint, __ATOMIC_RELAXED);
	return found;
}

int weft_inner_close(struct fid *endpoint)
{
	struct inner i;
	struct fid *inner;
	int ret;

	memset(&i, 0, sizeof i);
	i.place = find(endpoint);
	if (!i.place)
		return fi_close(endpoint);
	inner = *i.place;
	i.own = inner->ops;
	memcpy(&i.ops, i.own, i.own->size < sizeof i.ops ? i.own->size : sizeof i.ops);
	i.ops.close = close_and_keep;
	inner->ops = &i.ops;
	ret = fi_close(endpoint);
	if (!i.called)
		inner->ops = i.own;
	// An endpoint that is still there has the copy.
	if (!i.kept || !ret)
		free(i.copy);
	return ret;
}
