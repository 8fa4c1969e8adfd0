//go:build linux

#define _GNU_SOURCE
#include "innerreceives.h"

#if __has_include(<rdma/providers/fi_peer.h>)

#include "innerendpoint.h"
#include "mapped.h"

#include <malloc.h>
#include <rdma/providers/fi_peer.h>
#include <string.h>

// In libfabric 2, a reliable endpoint of efa has one of shm inside, which asks it for its receives and
// gives them back. fi_close frees the receives, and whom to ask, and closes the inner one after that: if
// it is amid a message, it gives a receive back to what is not there any more, and the process ends. So
// there is somebody else, to whom it means nothing.

static int none(struct fid_peer_srx *srx, struct fi_peer_match_attr *what,
		struct fi_peer_rx_entry **entry)
{
	(void)srx, (void)what, (void)entry;
	return -FI_ENOMEM;
}

static int refuse(struct fi_peer_rx_entry *entry)
{
	(void)entry;
	return -FI_ENOMEM;
}

static void forget(struct fi_peer_rx_entry *entry)
{
	(void)entry;
}

static void change(struct fid_peer_srx *srx, fi_addr_t (*address)(struct fi_peer_rx_entry *))
{
	(void)srx, (void)address;
}

static int close_nothing(struct fid *fid)
{
	(void)fid;
	return 0;
}

static struct fi_ops operations = { .size = sizeof operations, .close = close_nothing };

static struct fi_ops_srx_owner gives_nothing = {
	.size = sizeof gives_nothing,
	.get_msg = none,
	.get_tag = none,
	.queue_msg = refuse,
	.queue_tag = refuse,
	.foreach_unspec_addr = change,
	.free_entry = forget,
};

static struct fid_peer_srx nobody = {
	.ep_fid.fid = { .fclass = FI_CLASS_SRX_CTX, .ops = &operations },
	.owner_ops = &gives_nothing,
};

// has says whether an object has a word.
static int has(const struct fid *object, const void *word)
{
	size_t size = malloc_usable_size((void *)object), i;
	const void *its;

	for (i = sizeof *object; i + sizeof its <= size; i += sizeof its) {
		memcpy(&its, (const char *)object + i, sizeof its);
		if (its == word)
			return 1;
	}
	return 0;
}

void weft_receives_closing(struct fid *endpoint)
{
	size_t size = malloc_usable_size(endpoint), its, i, k;
	struct weft_looks l;
	struct fid *inner, *word;
	struct fid_peer_srx srx;

	if (weft_begin_looks(&l))
		return;
	for (i = sizeof(struct fid_ep); i + sizeof inner <= size; i += sizeof inner) {
		memcpy(&inner, (char *)endpoint + i, sizeof inner);
		if (!weft_is_inner(&l, endpoint, inner, FI_CLASS_EP))
			continue;
		its = malloc_usable_size(inner);
		for (k = sizeof(struct fid_ep); k + sizeof word <= its; k += sizeof word) {
			memcpy(&word, (char *)inner + k, sizeof word);
			// Both have it, as whom to ask.
			if ((uintptr_t)word >= 4096 && (uintptr_t)word % _Alignof(struct fid) == 0 &&
			    weft_look(&l, word, &srx, sizeof srx) &&
			    srx.ep_fid.fid.fclass == FI_CLASS_SRX_CTX && srx.owner_ops && has(endpoint, word)) {
				word = &nobody.ep_fid.fid;
				memcpy((char *)inner + k, &word, sizeof word);
			}
		}
	}
	weft_end_looks(&l);
}

#else

void weft_receives_closing(struct fid *endpoint)
{
	(void)endpoint;
}

#endif
