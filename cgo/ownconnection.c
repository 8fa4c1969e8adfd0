//go:build linux

#define _GNU_SOURCE
#include "ownconnection.h"
#include "mapped.h"

#define WORDS 4

int weft_owns_connection(struct fid_ep *ep, uintptr_t of)
{
	struct fid fid;
	void *words[WORDS];
	struct weft_looks l;
	int i, itself = 0, ours = 0;

	if (of == (uintptr_t)ep)
		return 1;
	if (of % _Alignof(struct fid) || weft_begin_looks(&l))
		return 0;
	// A reliable endpoint of net has connected ones inside, whose context is what it knows of the
	// connection: the connected one, and whose it is (struct xnet_conn).
	if (weft_look(&l, (const void *)of, &fid, sizeof fid) && fid.fclass == FI_CLASS_EP &&
	    weft_look(&l, fid.context, words, sizeof words))
		for (i = 0; i < WORDS; i++) {
			itself |= words[i] == (void *)of;
			ours |= words[i] == ep;
		}
	weft_end_looks(&l);
	return itself && ours;
}
