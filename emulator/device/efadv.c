/* libefa: what verbs does not say about EFA devices. */
#include <errno.h>
#include <infiniband/efadv.h>
#include <string.h>

#include "address.h"
#include "completion.h"
#include "device.h"
#include "export.h"
#include "queue_pair.h"
#include "settings.h"

/* The structures grow from version to version, and callers say how long theirs
 * are: one may be longer than the headers at hand know it. */

enum {
	/* Since rdma-core 46. */
	CAPS_RDMA_WRITE = 1 << 3,
};

EXPORT int efadv_query_device(struct ibv_context *context, struct efadv_device_attr *attr, uint32_t length)
{
	const struct settings *set = settings();
	struct efadv_device_attr full = {
		.max_sq_wr = DEVICE_SEND_WORK,
		.max_rq_wr = DEVICE_RECEIVE_WORK,
		.max_sq_sge = DEVICE_SEND_SGE,
		.max_rq_sge = DEVICE_RECEIVE_SGE,
		.inline_buf_size = DEVICE_INLINE,
		.device_caps = EFADV_DEVICE_ATTR_CAPS_RNR_RETRY | EFADV_DEVICE_ATTR_CAPS_CQ_WITH_SGID |
			       (set->rdma_read ? EFADV_DEVICE_ATTR_CAPS_RDMA_READ : 0) |
			       (set->rdma_write ? CAPS_RDMA_WRITE : 0),
		.max_rdma_size = set->rdma_read ? DEVICE_RDMA : 0,
	};

	(void)context;
	if (length < offsetof(struct efadv_device_attr, reserved))
		return EINVAL;
	memset(attr, 0, length);
	memcpy(attr, &full, length < sizeof(full) ? length : sizeof(full));
	return 0;
}

EXPORT int efadv_query_ah(struct ibv_ah *ah, struct efadv_ah_attr *attr, uint32_t length)
{
	if (length < offsetof(struct efadv_ah_attr, reserved))
		return EINVAL;
	memset(attr, 0, length);
	attr->ahn = ((struct address *)ah)->number;
	return 0;
}

EXPORT struct ibv_cq_ex *efadv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
					 struct efadv_cq_init_attr *efa, uint32_t length)
{
	if (length < sizeof(*efa) || efa->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	if (efa->wc_flags & ~(uint64_t)EFADV_WC_EX_WITH_SGID) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return completion_create(context, attr, efa->wc_flags & EFADV_WC_EX_WITH_SGID);
}

EXPORT struct efadv_cq *efadv_cq_from_ibv_cq_ex(struct ibv_cq_ex *cq)
{
	return &((struct completion_queue *)cq)->dv;
}

EXPORT struct ibv_qp *efadv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
					 struct efadv_qp_init_attr *efa, uint32_t length)
{
	if (attr->qp_type != IBV_QPT_DRIVER || length < sizeof(*efa) || efa->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	if (efa->driver_qp_type != EFADV_QP_DRIVER_TYPE_SRD) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	/* Later versions have flags and a service level in the reserved bytes: hints
	 * that a device may ignore. */
	return queue_pair_create(context, attr);
}

EXPORT struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t type)
{
	struct efadv_qp_init_attr efa = {.driver_qp_type = type};
	struct ibv_qp_init_attr_ex ex = queue_pair_extended(pd, attr);
	struct ibv_qp *qp = efadv_create_qp_ex(pd->context, &ex, &efa, sizeof(efa));

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/* From here on: since rdma-core 50 and later, which older headers do not know. */

struct efadv_mr_attr;
struct efadv_wq_attr;
struct efadv_cq_attr;

int efadv_query_mr(struct ibv_mr *mr, struct efadv_mr_attr *attr, uint32_t length);
int efadv_query_qp_wqs(struct ibv_qp *qp, struct efadv_wq_attr *send, struct efadv_wq_attr *receive, uint32_t length);
int efadv_query_cq(struct ibv_cq *cq, struct efadv_cq_attr *attr, uint32_t length);

/* All validity bits are 0: there is no interconnect to tell of. */
EXPORT int efadv_query_mr(struct ibv_mr *mr, struct efadv_mr_attr *attr, uint32_t length)
{
	(void)mr;
	memset((void *)attr, 0, length);
	return 0;
}

/* There are no queues that a program could write into itself. libfabric then
 * calls the functions of verbs. */
EXPORT int efadv_query_qp_wqs(struct ibv_qp *qp, struct efadv_wq_attr *send, struct efadv_wq_attr *receive, uint32_t length)
{
	(void)qp, (void)send, (void)receive, (void)length;
	return EOPNOTSUPP;
}

EXPORT int efadv_query_cq(struct ibv_cq *cq, struct efadv_cq_attr *attr, uint32_t length)
{
	(void)cq, (void)attr, (void)length;
	return EOPNOTSUPP;
}
