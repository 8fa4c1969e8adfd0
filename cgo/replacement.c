//go:build linux

#define _GNU_SOURCE
#include "replacement.h"

#include <string.h>

// same_host says whether two addresses are of one host.
static int same_host(const union weft_host *a, const union weft_host *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return 0;
	return a->any.sa_family == AF_INET6 ?
		       !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) :
		       a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
}

int weft_asks_again(const struct weft_looks *l, const struct weft_bringing *b,
		    const union weft_host *from, const struct weft_request *r)
{
	// What ofi_rxm has of the connection (struct rxm_conn): its state and the peer are before the
	// endpoint; the peer's process is behind that, in the upper half.
	enum { idle, connecting, accepting, connected };
	const struct fid_ep *of[8];
	uint64_t process;
	uint32_t state;
	// And of the peer (struct util_peer_addr): the address is at the end.
	struct {
		uint64_t before[4];
		union weft_host at;
	} peer;
	size_t i;

	if (!weft_look(l, b->own->context, (void *)of, sizeof of))
		return 0;
	for (i = 2; of[i] != b->given;)
		if (++i + 2 >= sizeof of / sizeof *of)
			return 0;
	state = (uint32_t)(uintptr_t)of[i - 2];
	if (state != accepting && state != connected)
		return 0;
	process = (uintptr_t)of[i + 2] >> 32;
	if (process && process == r->number >> 32)
		return 0;
	return weft_look(l, of[i - 1], &peer, sizeof peer) && same_host(&peer.at, from) &&
	       peer.at.v4.sin_port == htons(r->port);
}
