/* What cgo/verbs.h says of libibverbs and libefa is what their headers say. */
#include <infiniband/efadv.h>
#include <infiniband/verbs.h>
#include <stddef.h>

#include "../../cgo/verbs.h"

#define SAME(theirs, member, ours, name)                                              \
	_Static_assert(offsetof(struct theirs, member) == offsetof(struct ours, name) && \
		       sizeof(((struct theirs *)0)->member) ==                        \
			       sizeof(((struct ours *)0)->name), #theirs "." #member)

SAME(ibv_sge, addr, verbs_sge, addr);
SAME(ibv_recv_wr, wr_id, verbs_recv, wr_id);
SAME(ibv_recv_wr, next, verbs_recv, next);
SAME(ibv_recv_wr, sg_list, verbs_recv, sg_list);
SAME(ibv_recv_wr, num_sge, verbs_recv, num_sge);
SAME(ibv_cq_ex, context, verbs_cq, context);
SAME(ibv_cq_ex, cq_context, verbs_cq, cq_context);
SAME(ibv_cq_ex, status, verbs_cq, status);
SAME(ibv_cq_ex, wr_id, verbs_cq, wr_id);
SAME(ibv_cq_ex, start_poll, verbs_cq, start_poll);
SAME(ibv_cq_ex, next_poll, verbs_cq, next_poll);
SAME(ibv_cq_ex, end_poll, verbs_cq, end_poll);
SAME(ibv_cq_ex, read_opcode, verbs_cq, read_opcode);
SAME(ibv_cq_ex, read_byte_len, verbs_cq, read_byte_len);
SAME(ibv_qp, context, verbs_qp, context);
SAME(ibv_qp, send_cq, verbs_qp, send_cq);
SAME(ibv_qp, recv_cq, verbs_qp, recv_cq);
SAME(ibv_qp_attr, qp_state, verbs_qp_attributes, state);
SAME(ibv_context, ops.post_recv, verbs_device, post_recv);
SAME(efadv_device_attr, device_caps, efa_attributes, device_caps);

_Static_assert(VERBS_SUCCESS == (int)IBV_WC_SUCCESS, "IBV_WC_SUCCESS");
_Static_assert(VERBS_RECEIVE == (int)IBV_WC_RECV, "IBV_WC_RECV");
_Static_assert(VERBS_FLUSHED == (int)IBV_WC_WR_FLUSH_ERR, "IBV_WC_WR_FLUSH_ERR");
_Static_assert(VERBS_ERROR == (int)IBV_QPS_ERR, "IBV_QPS_ERR");
_Static_assert(VERBS_STATE == (int)IBV_QP_STATE, "IBV_QP_STATE");
_Static_assert(sizeof(struct verbs_qp_attributes) >= sizeof(struct ibv_qp_attr), "ibv_qp_attr");
_Static_assert(EFA_READS == (int)EFADV_DEVICE_ATTR_CAPS_RDMA_READ, "RDMA_READ");

int main(void)
{
	return 0;
}
