#include "queue_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "engine.h"
#include "export.h"
#include "post.h"
#include "settings.h"
#include "srd.h"
#include "udp.h"

static int check(const struct ibv_qp_init_attr_ex *attr)
{
	const struct settings *set = settings();
	uint64_t operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		return EINVAL;
	if (attr->qp_type == IBV_QPT_DRIVER && set->rdma_read)
		operations |= IBV_QP_EX_WITH_RDMA_READ;
	if (attr->qp_type == IBV_QPT_DRIVER && set->rdma_write)
		operations |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) && (attr->send_ops_flags & ~operations))
		return EOPNOTSUPP;
	if (!attr->recv_cq || !attr->send_cq || attr->srq)
		return EINVAL;
	if (attr->cap.max_send_sge > DEVICE_SEND_SGE || attr->cap.max_recv_sge > DEVICE_RECEIVE_SGE ||
	    attr->cap.max_send_wr > DEVICE_SEND_WORK || attr->cap.max_recv_wr > DEVICE_RECEIVE_WORK ||
	    attr->cap.max_inline_data > DEVICE_INLINE)
		return EINVAL;
	return 0;
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return n ? power : 0;
}

/* queues allocates room for the work, and says how much there is. */
static bool queues(struct queue_pair *qp, struct ibv_qp_cap *cap)
{
	qp->send_room = power_of_two(cap->max_send_wr);
	qp->receive_room = power_of_two(cap->max_recv_wr);
	qp->send_parts = cap->max_send_sge;
	qp->receive_parts = cap->max_recv_sge;
	qp->inline_room = cap->max_inline_data;
	qp->works = calloc(qp->send_room + 1, sizeof(*qp->works));
	qp->receives = calloc(qp->receive_room + 1, sizeof(*qp->receives));
	if (!qp->works || !qp->receives)
		return false;
	for (uint32_t i = 0; i < qp->send_room; i++) {
		qp->works[i].qp = qp;
		qp->works[i].next = qp->free;
		qp->free = &qp->works[i];
	}
	cap->max_send_wr = qp->send_room;
	cap->max_recv_wr = qp->receive_room;
	return true;
}

static void release(struct queue_pair *qp)
{
	pthread_mutex_destroy(&qp->staging);
	pthread_mutex_destroy(&qp->qp.mutex);
	pthread_cond_destroy(&qp->qp.cond);
	free(qp->works);
	free(qp->receives);
	free(qp);
}

struct ibv_qp *queue_pair_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct queue_pair *qp = NULL;
	static uint64_t salt;
	struct timespec now;
	uint16_t port;
	int err = check(attr);

	if (err)
		goto out;
	qp = calloc(1, sizeof(*qp));
	if (!qp) {
		err = ENOMEM;
		goto out;
	}
	pthread_mutex_init(&qp->staging, NULL);
	pthread_mutex_init(&qp->qp.mutex, NULL);
	pthread_cond_init(&qp->qp.cond, NULL);
	qp->device = device_of(context);
	qp->datagrams = attr->qp_type == IBV_QPT_UD;
	qp->all_signaled = attr->sq_sig_all;
	qp->send_cq = (struct completion_queue *)attr->send_cq;
	qp->receive_cq = (struct completion_queue *)attr->recv_cq;
	err = queues(qp, &attr->cap) ? udp_open(qp->device->address, &qp->socket, &port, &qp->socket_room) : ENOMEM;
	if (err)
		goto release;
	/* Of two queue pairs with the same address the later one is greater. */
	clock_gettime(CLOCK_REALTIME, &now);
	qp->incarnation = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	qp->qp.context = context;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.pd = attr->pd;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.qp_num = port;
	qp->qp.state = IBV_QPS_RESET;
	qp->qp.qp_type = attr->qp_type;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		post_fill(&qp->ex, attr->send_ops_flags);
	engine_begin();
	faults_seed(&qp->faults, settings()->seed, salt++);
	err = engine_add(qp);
	if (!err) {
		qp->send_cq->queue_pairs++;
		qp->receive_cq->queue_pairs++;
	}
	engine_end();
	if (err) {
		close(qp->socket);
		goto release;
	}
	__atomic_fetch_add(&((struct domain *)attr->pd)->users, 1, __ATOMIC_SEQ_CST);
	return &qp->qp;
release:
	release(qp);
out:
	errno = err;
	return NULL;
}

struct ibv_qp *queue_pair_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type != IBV_QPT_UD) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return queue_pair_create(context, attr);
}

struct ibv_qp_init_attr_ex queue_pair_extended(struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = queue_pair_extended(pd, attr);
	struct ibv_qp *qp = queue_pair_create_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *verbs)
{
	struct queue_pair *qp = (struct queue_pair *)verbs;

	return qp->ex.wr_start ? &qp->ex : NULL;
}

bool queue_pair_receiving(const struct queue_pair *qp)
{
	return qp->qp.state == IBV_QPS_RTR || queue_pair_sending(qp);
}

bool queue_pair_sending(const struct queue_pair *qp)
{
	return qp->qp.state == IBV_QPS_RTS || qp->qp.state == IBV_QPS_SQD;
}

void queue_pair_complete(struct work *work, enum status status)
{
	struct queue_pair *qp = work->qp;
	struct completion completion = {
		.qp = qp,
		.wr_id = work->wr_id,
		.status = status,
		.operation = work->operation,
		.qpn = qp->qp.qp_num,
		.source_number = ADDRESS_UNKNOWN,
	};

	work->next = qp->free;
	qp->free = work;
	completion_push(qp->send_cq, &completion);
}

void queue_pair_received(struct queue_pair *qp, struct completion *completion, struct in_addr source)
{
	const struct receive *receive = &qp->receives[qp->receive_head++ % qp->receive_room];

	completion->qp = qp;
	completion->receive = true;
	completion->wr_id = receive->wr_id;
	completion->qpn = qp->qp.qp_num;
	completion->source = gid_of(source);
	completion->source_number = address_number(qp->device, source);
	completion_push(qp->receive_cq, completion);
}

void queue_pair_completed(struct queue_pair *qp, bool receive)
{
	if (receive)
		qp->receive_used--;
	else
		qp->send_used--;
}

/* flush completes all that was posted with the status for it. */
static void flush(struct queue_pair *qp)
{
	srd_flush(qp);
	while (qp->receive_head != qp->receive_tail) {
		struct completion completion = {.status = STATUS_FLUSHED};

		queue_pair_received(qp, &completion, (struct in_addr){0});
	}
}

/* forget drops all that was posted, and what was not polled. */
static void forget(struct queue_pair *qp)
{
	srd_free(qp);
	completion_forget(qp->send_cq, qp);
	completion_forget(qp->receive_cq, qp);
	qp->send_used = qp->receive_used = 0;
	qp->receive_head = qp->receive_tail = 0;
	qp->free = NULL;
	for (uint32_t i = 0; i < qp->send_room; i++) {
		qp->works[i].next = qp->free;
		qp->free = &qp->works[i];
	}
}

/* transition is the table of the kernel for SRD and UD: what must be set, and
 * what may be. It returns 0 or EINVAL. */
static int transition(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	int must, may;

	mask &= ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
		must = may = 0;
	} else if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) {
		must = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
		may = 0;
	} else if (from == IBV_QPS_INIT && to == IBV_QPS_INIT) {
		must = 0;
		may = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	} else if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
		must = 0;
		may = IBV_QP_PKEY_INDEX | IBV_QP_QKEY;
	} else if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) {
		must = IBV_QP_SQ_PSN;
		may = IBV_QP_QKEY | IBV_QP_RNR_RETRY;
	} else if ((from == IBV_QPS_RTS || from == IBV_QPS_SQD) && (to == IBV_QPS_RTS || to == IBV_QPS_SQD)) {
		must = 0;
		may = IBV_QP_QKEY;
	} else {
		return EINVAL;
	}
	return (mask & must) == must && !(mask & ~(must | may)) ? 0 : EINVAL;
}

static int modify(struct queue_pair *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = qp->qp.state, to = mask & IBV_QP_STATE ? attr->qp_state : from;
	int err;

	if (qp->dead || ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from))
		return EINVAL;
	err = transition(from, to, mask);
	if (err)
		return err;
	if ((mask & IBV_QP_PKEY_INDEX && attr->pkey_index) || (mask & IBV_QP_PORT && attr->port_num != 1) ||
	    (mask & IBV_QP_RNR_RETRY && (attr->rnr_retry > 7 || qp->datagrams)))
		return EINVAL;
	if (mask & IBV_QP_QKEY)
		qp->qkey = attr->qkey;
	if (mask & IBV_QP_RNR_RETRY)
		qp->rnr_retry = attr->rnr_retry;
	/* A device that is not told retries for ever. */
	else if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		qp->rnr_retry = 7;
	qp->qp.state = to;
	if (to == IBV_QPS_ERR && from != IBV_QPS_ERR)
		flush(qp);
	if (to == IBV_QPS_RESET)
		forget(qp);
	return 0;
}

EXPORT int ibv_modify_qp(struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask)
{
	int err;

	engine_lock();
	err = modify((struct queue_pair *)verbs, attr, mask);
	engine_unlock();
	return err;
}

EXPORT int ibv_query_qp(struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct queue_pair *qp = (struct queue_pair *)verbs;

	(void)mask;
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	engine_lock();
	attr->qp_state = attr->cur_qp_state = qp->qp.state;
	attr->qkey = qp->qkey;
	attr->port_num = 1;
	attr->rnr_retry = qp->rnr_retry;
	attr->cap = (struct ibv_qp_cap){
		.max_send_wr = qp->send_room,
		.max_recv_wr = qp->receive_room,
		.max_send_sge = qp->send_parts,
		.max_recv_sge = qp->receive_parts,
		.max_inline_data = qp->inline_room,
	};
	init->qp_context = qp->qp.qp_context;
	init->send_cq = qp->qp.send_cq;
	init->recv_cq = qp->qp.recv_cq;
	init->cap = attr->cap;
	init->qp_type = qp->qp.qp_type;
	init->sq_sig_all = qp->all_signaled;
	engine_unlock();
	return 0;
}

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode operation, uint32_t flags)
{
	(void)qp, (void)operation, (void)flags;
	return 0;
}

/* linger waits for the peers that the device owes an answer which it has lost: they
 * ask again. Hardware loses next to nothing; here, programs would end with the error
 * of a peer that is gone as often as the last answer is lost. */
static void linger(struct queue_pair *qp)
{
	static const uint64_t most = 300000000;
	const struct timespec moment = {.tv_nsec = 1000000};

	for (;;) {
		bool owing;

		engine_lock();
		owing = !qp->dead && qp->lost_answers && engine_now() - qp->lost_answer < most;
		engine_unlock();
		if (!owing)
			return;
		nanosleep(&moment, NULL);
	}
}

EXPORT int ibv_destroy_qp(struct ibv_qp *verbs)
{
	struct queue_pair *qp = (struct queue_pair *)verbs;

	linger(qp);
	engine_begin();
	if (!qp->dead)
		engine_remove(qp);
	forget(qp);
	qp->send_cq->queue_pairs--;
	qp->receive_cq->queue_pairs--;
	engine_end();
	if (!qp->dead)
		close(qp->socket);
	__atomic_fetch_sub(&((struct domain *)qp->qp.pd)->users, 1, __ATOMIC_SEQ_CST);
	release(qp);
	return 0;
}

void queue_pair_abandon(struct queue_pair *qp)
{
	srd_free(qp);
	close(qp->socket);
	qp->dead = true;
	qp->qp.state = IBV_QPS_ERR;
}
