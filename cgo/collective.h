// Groups of endpoints: collectives and multicast.
#ifndef WEFT_COLLECTIVE_H
#define WEFT_COLLECTIVE_H

#include "shim.h"

#include <rdma/fi_collective.h>

// One collective to post. Laid out like Collective in collective.go.
struct weft_collective {
	uint32_t kind; // enum fi_collective_op
	uint32_t datatype;
	uint32_t op;
	uint32_t pad;
	uintptr_t buf;
	uint64_t count; // of values; for each member where that matters
	uintptr_t desc;
	uintptr_t result;
	uintptr_t result_desc;
	uint64_t group;
	uint64_t root;
	uint64_t flags;
	uintptr_t slot;
	uint64_t token;
};

int weft_join_collective(struct fid_ep *ep, uint64_t address,
			 const struct fid_av_set *set, uint64_t flags,
			 struct fid_mc **mc);
int weft_join(struct fid_ep *ep, const void *address, uint64_t flags,
	      struct fid_mc **mc);
uint64_t weft_mc_addr(struct fid_mc *mc);
int weft_collective_post(struct fid_ep *ep, const struct weft_collective *c);
int weft_query_collective(struct fid_domain *domain, uint32_t kind, uint32_t op,
			  uint32_t datatype, uint64_t *members, uint64_t *count,
			  uint64_t *size);

#endif
