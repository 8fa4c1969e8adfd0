/* What EFA devices do not have, and what is nothing to do here. They are exported
 * all the same, so that no object of this device comes into libibverbs' hands. */
#include <errno.h>
#include <infiniband/verbs.h>

#include "export.h"

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	(void)pd, (void)attr;
	errno = EOPNOTSUPP;
	return NULL;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	(void)srq;
	return EOPNOTSUPP;
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int room)
{
	(void)cq, (void)room;
	return EOPNOTSUPP;
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	return EOPNOTSUPP;
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	return EOPNOTSUPP;
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	(void)context, (void)event;
	errno = EAGAIN;
	return -1;
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

/* Pages that a fork copies are none of this device's worries. */
EXPORT int ibv_fork_init(void)
{
	return 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}
