//go:build linux

#include "collective.h"

#include <string.h>

#define HEADERS FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

// What a slot says of a collective, beyond the kinds of shim.h.
#define KIND_COLLECTIVE 100

int weft_join_collective(struct fid_ep *ep, uint64_t address,
			 const struct fid_av_set *set, uint64_t flags,
			 struct fid_mc **mc)
{
	return fi_join_collective(ep, address, set, flags, mc, NULL);
}

int weft_join(struct fid_ep *ep, const void *address, uint64_t flags,
	      struct fid_mc **mc)
{
	return fi_join(ep, address, flags, mc, NULL);
}

uint64_t weft_mc_addr(struct fid_mc *mc)
{
	return fi_mc_addr(mc);
}

static ssize_t barrier(struct fid_ep *ep, const struct weft_collective *c)
{
#if FI_VERSION_GE(HEADERS, FI_VERSION(1, 17))
	if (c->flags)
		return fi_barrier2(ep, c->group, c->flags, (void *)c->slot);
#else
	if (c->flags)
		return -FI_ENOSYS;
#endif
	return fi_barrier(ep, c->group, (void *)c->slot);
}

// Most of libfabric's calls do not look whether the endpoint has them.
#define HAS(name) FI_CHECK_OP(ep->collective, struct fi_ops_collective, name)

static ssize_t post(struct fid_ep *ep, const struct weft_collective *c)
{
	enum fi_datatype type = (enum fi_datatype)c->datatype;
	enum fi_op op = (enum fi_op)c->op;
	void *buf = (void *)c->buf, *desc = (void *)c->desc;
	void *result = (void *)c->result, *result_desc = (void *)c->result_desc;
	void *context = (void *)c->slot;

	switch ((enum fi_collective_op)c->kind) {
	case FI_BARRIER:
		if (HAS(barrier))
			return barrier(ep, c);
		break;
	case FI_BROADCAST:
		if (HAS(broadcast))
			return fi_broadcast(ep, buf, c->count, desc, c->group,
					    c->root, type, c->flags, context);
		break;
	case FI_ALLTOALL:
		if (HAS(alltoall))
			return fi_alltoall(ep, buf, c->count, desc, result,
					   result_desc, c->group, type,
					   c->flags, context);
		break;
	case FI_ALLREDUCE:
		if (HAS(allreduce))
			return fi_allreduce(ep, buf, c->count, desc, result,
					    result_desc, c->group, type, op,
					    c->flags, context);
		break;
	case FI_ALLGATHER:
		if (HAS(allgather))
			return fi_allgather(ep, buf, c->count, desc, result,
					    result_desc, c->group, type,
					    c->flags, context);
		break;
	case FI_REDUCE_SCATTER:
		if (HAS(reduce_scatter))
			return fi_reduce_scatter(ep, buf, c->count, desc, result,
						 result_desc, c->group, type, op,
						 c->flags, context);
		break;
	case FI_REDUCE:
		if (HAS(reduce))
			return fi_reduce(ep, buf, c->count, desc, result,
					 result_desc, c->group, c->root, type,
					 op, c->flags, context);
		break;
	case FI_SCATTER:
		if (HAS(scatter))
			return fi_scatter(ep, buf, c->count, desc, result,
					  result_desc, c->group, c->root, type,
					  c->flags, context);
		break;
	case FI_GATHER:
		if (HAS(gather))
			return fi_gather(ep, buf, c->count, desc, result,
					 result_desc, c->group, c->root, type,
					 c->flags, context);
		break;
	default:
		break;
	}
	return -FI_ENOSYS;
}

int weft_collective_post(struct fid_ep *ep, const struct weft_collective *c)
{
	struct weft_slot *slot = (struct weft_slot *)c->slot;

	slot->token = c->token;
	slot->kind = KIND_COLLECTIVE;
	return (int)post(ep, c);
}

int weft_query_collective(struct fid_domain *domain, uint32_t kind, uint32_t op,
			  uint32_t datatype, uint64_t *members, uint64_t *count,
			  uint64_t *size)
{
	struct fi_collective_attr attr;
	int ret;

	memset(&attr, 0, sizeof attr);
	attr.op = (enum fi_op)op;
	attr.datatype = (enum fi_datatype)datatype;
	ret = fi_query_collective(domain, (enum fi_collective_op)kind, &attr, 0);
	*members = attr.max_members;
	*count = attr.datatype_attr.count;
	*size = attr.datatype_attr.size;
	// ofi_rxm of 2.x says that it has none with a positive code.
	return ret > 0 ? -ret : ret;
}
