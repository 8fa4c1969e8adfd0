#include "post.h"

#include <errno.h>
#include <string.h>

#include "address.h"
#include "engine.h"
#include "queue_pair.h"
#include "settings.h"
#include "srd.h"

/* begin takes a place for one more posted send, into the staged ones. What it
 * refuses is what the device's library in rdma-core refuses. */
static struct work *begin(struct queue_pair *qp, enum operation operation, unsigned flags, uint64_t wr_id)
{
	struct work *work;
	int err = 0;

	if (qp->staging_error)
		return NULL;
	engine_lock();
	if (qp->dead || !queue_pair_sending(qp))
		err = EINVAL;
	else if (!(flags & IBV_SEND_SIGNALED) && !qp->all_signaled)
		err = EINVAL;
	else if (flags & ~(unsigned)(IBV_SEND_SIGNALED | IBV_SEND_INLINE))
		err = EINVAL;
	else if (qp->send_used == qp->send_room)
		err = ENOMEM;
	if (err) {
		engine_unlock();
		qp->staging_error = err;
		return NULL;
	}
	qp->send_used++;
	work = qp->free;
	qp->free = work->next;
	engine_unlock();
	*work = (struct work){.qp = qp, .wr_id = wr_id, .operation = operation};
	if (qp->staged_last)
		qp->staged_last->next = work;
	else
		qp->staged = work;
	qp->staged_last = work;
	qp->staged_count++;
	return work;
}

/* give_back undoes what begin took. */
static void give_back(struct queue_pair *qp)
{
	engine_lock();
	while (qp->staged) {
		struct work *work = qp->staged;

		qp->staged = work->next;
		work->next = qp->free;
		qp->free = work;
		qp->send_used--;
	}
	engine_unlock();
}

static void start(struct queue_pair *qp)
{
	pthread_mutex_lock(&qp->staging);
	qp->staged = qp->staged_last = NULL;
	qp->staged_count = 0;
	qp->staging_error = 0;
}

static int complete(struct queue_pair *qp)
{
	int err = qp->staging_error;

	if (err) {
		give_back(qp);
	} else {
		engine_lock();
		while (qp->staged) {
			struct work *work = qp->staged;

			qp->staged = work->next;
			work->next = NULL;
			srd_post(work);
		}
		engine_unlock();
	}
	pthread_mutex_unlock(&qp->staging);
	return err;
}

static void set_parts(struct queue_pair *qp, struct work *work, size_t count, const struct ibv_sge *list)
{
	/* A device takes one local buffer for a read or a write. */
	if (count > (work->operation == OPERATION_SEND ? qp->send_parts : 1)) {
		qp->staging_error = EINVAL;
		return;
	}
	work->parts = (uint8_t)count;
	work->length = 0;
	for (size_t i = 0; i < count; i++) {
		work->sge[i] = list[i];
		work->length += list[i].length;
	}
}

static void set_inline(struct queue_pair *qp, struct work *work, const void *data, size_t length)
{
	if (work->length + length > qp->inline_room || work->operation != OPERATION_SEND) {
		qp->staging_error = EINVAL;
		return;
	}
	work->inlined = true;
	if (length)
		memcpy(work->data + work->length, data, length);
	work->length += length;
}

static void set_address(struct work *work, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	work->addressed = ah && ah->pd == work->qp->qp.pd;
	if (work->addressed)
		work->ip = ((const struct address *)ah)->ip;
	work->qpn = qpn;
	work->qkey = qkey;
}

/* The interface of ibv_qp_ex: a session of calls for each work. */

static struct queue_pair *pair(struct ibv_qp_ex *ex)
{
	return (struct queue_pair *)ex;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	start(pair(ex));
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	return complete(pair(ex));
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	give_back(pair(ex));
	pthread_mutex_unlock(&pair(ex)->staging);
}

static struct work *wr_begin(struct ibv_qp_ex *ex, enum operation operation)
{
	return begin(pair(ex), operation, ex->wr_flags, ex->wr_id);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	wr_begin(ex, OPERATION_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 immediate)
{
	struct work *work = wr_begin(ex, OPERATION_SEND);

	if (!work)
		return;
	work->has_immediate = true;
	work->immediate = immediate;
}

static struct work *wr_remote(struct ibv_qp_ex *ex, enum operation operation, uint32_t rkey, uint64_t remote)
{
	struct work *work = wr_begin(ex, operation);

	if (!work)
		return NULL;
	work->rkey = rkey;
	work->remote = remote;
	return work;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote)
{
	wr_remote(ex, OPERATION_READ, rkey, remote);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote)
{
	wr_remote(ex, OPERATION_WRITE, rkey, remote);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote, __be32 immediate)
{
	struct work *work = wr_remote(ex, OPERATION_WRITE, rkey, remote);

	if (!work)
		return;
	work->has_immediate = true;
	work->immediate = immediate;
}

/* latest is the work that the session is at, NULL if there is none or it failed. */
static struct work *latest(struct ibv_qp_ex *ex)
{
	struct queue_pair *qp = pair(ex);

	if (qp->staging_error)
		return NULL;
	if (!qp->staged_last)
		qp->staging_error = EINVAL;
	return qp->staged_last;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_sge *list)
{
	struct work *work = latest(ex);

	if (work)
		set_parts(pair(ex), work, count, list);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t address, uint32_t length)
{
	struct ibv_sge part = {.addr = address, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, 1, &part);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *data, size_t length)
{
	struct work *work = latest(ex);

	if (work)
		set_inline(pair(ex), work, data, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_data_buf *list)
{
	for (size_t i = 0; i < count; i++)
		wr_set_inline_data(ex, list[i].addr, list[i].length);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct work *work = latest(ex);

	if (work)
		set_address(work, ah, qpn, qkey);
}

void post_fill(struct ibv_qp_ex *ex, uint64_t operations)
{
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	if (operations & IBV_QP_EX_WITH_SEND)
		ex->wr_send = wr_send;
	if (operations & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = wr_send_imm;
	if (operations & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = wr_rdma_read;
	if (operations & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = wr_rdma_write;
	if (operations & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_ud_addr = wr_set_ud_addr;
}

/* The older interface: a list of works. Devices know no reads and writes there. */

static int post_one(struct queue_pair *qp, struct ibv_send_wr *wr)
{
	struct work *work;

	start(qp);
	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
		qp->staging_error = EINVAL;
	work = begin(qp, OPERATION_SEND, wr->send_flags, wr->wr_id);
	if (work) {
		work->has_immediate = wr->opcode == IBV_WR_SEND_WITH_IMM;
		work->immediate = wr->imm_data;
		set_address(work, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
		if (!(wr->send_flags & IBV_SEND_INLINE))
			set_parts(qp, work, (size_t)wr->num_sge, wr->sg_list);
		for (int i = 0; (wr->send_flags & IBV_SEND_INLINE) && i < wr->num_sge; i++) {
			const void *data = (const void *)(uintptr_t)wr->sg_list[i].addr;

			set_inline(qp, work, data, wr->sg_list[i].length);
		}
	}
	return complete(qp);
}

int post_send(struct ibv_qp *qp, struct ibv_send_wr *work, struct ibv_send_wr **bad)
{
	int err = 0;

	while (work && !err) {
		err = post_one((struct queue_pair *)qp, work);
		if (err)
			*bad = work;
		work = work->next;
	}
	return err;
}

static int receive_one(struct queue_pair *qp, const struct ibv_recv_wr *wr)
{
	struct receive *receive;

	if (qp->dead || qp->qp.state == IBV_QPS_RESET || qp->qp.state == IBV_QPS_ERR)
		return EINVAL;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->receive_parts)
		return EINVAL;
	if (qp->receive_used == qp->receive_room)
		return ENOMEM;
	receive = &qp->receives[qp->receive_tail++ % qp->receive_room];
	receive->wr_id = wr->wr_id;
	receive->parts = (uint8_t)wr->num_sge;
	receive->sge = wr->num_sge ? wr->sg_list[0] : (struct ibv_sge){0};
	qp->receive_used++;
	return 0;
}

int post_receive(struct ibv_qp *qp, struct ibv_recv_wr *work, struct ibv_recv_wr **bad)
{
	int err = 0;

	engine_lock();
	while (work && !err) {
		err = receive_one((struct queue_pair *)qp, work);
		if (err)
			*bad = work;
		work = work->next;
	}
	engine_unlock();
	return err;
}
