//go:build linux

#define _GNU_SOURCE
#include "listening.h"
#include "innerendpoint.h"
#include "mapped.h"

#include <malloc.h>
#include <rdma/fi_cm.h>
#include <string.h>

// An endpoint of ofi_rxm listens by a passive one that it has inside, as the last step of fi_enable. If
// that fails, libfabric 2 frees the receives that it has made, and keeps the pointer: fi_close frees them
// again. So it listens before, when there is nothing to be freed, and then not again.

static struct fid_pep *passive(struct fid_ep *ep)
{
	struct fid **word = (struct fid **)ep;
	size_t left = malloc_usable_size(ep) / sizeof *word;
	struct fid_pep *found = NULL;
	struct weft_looks l;

	if (weft_begin_looks(&l))
		return NULL;
	for (; left && !found; left--, word++)
		if (weft_is_inner(&l, &ep->fid, *word, FI_CLASS_PEP))
			found = (struct fid_pep *)*word;
	weft_end_looks(&l);
	return found;
}

static int listens(struct fid_pep *pep)
{
	(void)pep;
	return 0;
}

int weft_enable_that_listens(struct fid_ep *ep)
{
	struct fid_pep *inside = passive(ep);
	struct fi_ops_cm calls, *own;
	int ret;

	if (!inside)
		return weft_enable(ep);
	ret = fi_listen(inside);
	if (ret)
		return ret;
	own = inside->cm;
	memset(&calls, 0, sizeof calls);
	memcpy(&calls, own, own->size < sizeof calls ? own->size : sizeof calls);
	calls.listen = listens;
	inside->cm = &calls;
	ret = weft_enable(ep);
	inside->cm = own;
	return ret;
}
