#include "completion.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "counters.h"
#include "device.h"
#include "engine.h"
#include "export.h"
#include "queue_pair.h"

static void count(const struct completion *of)
{
	static const enum counter which[] = {
		[OPERATION_SEND] = COUNTER_SENDS,
		[OPERATION_READ] = COUNTER_READS,
		[OPERATION_WRITE] = COUNTER_WRITES,
	};

	counters_add(of->receive ? COUNTER_RECEIVES : which[of->operation], 1);
	if (of->status)
		counters_add(COUNTER_ERRORS, 1);
}

void completion_push(struct completion_queue *cq, const struct completion *completion)
{
	count(completion);
	if (cq->tail - cq->head > cq->mask) {
		/* A device writes over what was not read. Nobody can rely on what
		 * comes out of this queue any more. */
		if (!cq->overrun)
			fprintf(stderr, "weft-efa: a completion queue of %u entries overran\n", cq->mask + 1);
		counters_add(COUNTER_OVERRUNS, 1);
		cq->overrun = true;
		return;
	}
	cq->ring[cq->tail++ & cq->mask] = *completion;
	if (cq->armed) {
		cq->armed = false;
		channel_announce(cq);
	}
}

void completion_forget(struct completion_queue *cq, const struct queue_pair *qp)
{
	uint32_t kept = cq->head;

	for (uint32_t i = cq->head; i != cq->tail; i++)
		if (cq->ring[i & cq->mask].qp != qp)
			cq->ring[kept++ & cq->mask] = cq->ring[i & cq->mask];
	cq->tail = kept;
}

/* take moves the oldest completion into current. It returns 0, ENOENT if there is
 * none, or EINVAL if some were lost. */
static int take(struct completion_queue *cq)
{
	if (cq->head == cq->tail)
		return cq->overrun ? EINVAL : ENOENT;
	cq->current = cq->ring[cq->head++ & cq->mask];
	cq->ex.wr_id = cq->current.wr_id;
	cq->ex.status = status_to_verbs(cq->current.status);
	queue_pair_completed(cq->current.qp, cq->current.receive);
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct completion_queue *cq = (struct completion_queue *)ex;
	int err;

	if (attr->comp_mask)
		return EINVAL;
	engine_lock();
	if (cq->head == cq->tail)
		engine_polled();
	err = take(cq);
	/* The lock is not held until end_poll: whoever handles a completion posts. */
	engine_unlock();
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	int err;

	engine_lock();
	err = take((struct completion_queue *)ex);
	engine_unlock();
	return err;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	(void)ex;
}

static enum ibv_wc_opcode opcode(const struct completion *of, bool reads_are_sends)
{
	switch (of->operation) {
	case OPERATION_WRITE:
		return of->receive ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RDMA_WRITE;
	case OPERATION_READ:
		/* rdma-core calls them sends for long, and libfabric before 1.18
		 * knows no other name. */
		return reads_are_sends ? IBV_WC_SEND : IBV_WC_RDMA_READ;
	default:
		return of->receive ? IBV_WC_RECV : IBV_WC_SEND;
	}
}

static const struct completion *current(struct ibv_cq_ex *ex)
{
	return &((struct completion_queue *)ex)->current;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return opcode(current(ex), ((struct completion_queue *)ex)->reads_are_sends);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return current(ex)->status;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return current(ex)->receive ? current(ex)->length : 0;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return current(ex)->immediate;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return current(ex)->qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return current(ex)->source_qpn;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return current(ex)->has_immediate ? IBV_WC_WITH_IMM : 0;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return current(ex)->source_number;
}

static uint8_t read_nothing(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

/* A device tells the sender's GID only if no address handle names it. */
static int read_sgid(struct efadv_cq *dv, union ibv_gid *gid)
{
	struct completion_queue *cq = (struct completion_queue *)((char *)dv - offsetof(struct completion_queue, dv));

	if (cq->current.source_number != ADDRESS_UNKNOWN)
		return -ENOENT;
	*gid = cq->current.source;
	return 0;
}

int completion_poll(struct ibv_cq *verbs, int room, struct ibv_wc *into)
{
	struct completion_queue *cq = (struct completion_queue *)verbs;
	int n = 0, err = 0;

	engine_lock();
	if (cq->head == cq->tail)
		engine_polled();
	while (n < room && !(err = take(cq))) {
		const struct completion *of = &cq->current;

		into[n++] = (struct ibv_wc){
			.wr_id = of->wr_id,
			.status = status_to_verbs(of->status),
			.opcode = opcode(of, cq->reads_are_sends),
			.vendor_err = of->status,
			.byte_len = of->receive ? of->length : 0,
			.imm_data = of->immediate,
			.qp_num = of->qpn,
			.src_qp = of->source_qpn,
			.wc_flags = of->has_immediate ? IBV_WC_WITH_IMM : 0,
			.slid = of->source_number,
		};
	}
	engine_unlock();
	return n || err != EINVAL ? n : -err;
}

int completion_arm(struct ibv_cq *verbs, int solicited_only)
{
	struct completion_queue *cq = (struct completion_queue *)verbs;

	if (solicited_only)
		return EOPNOTSUPP;
	engine_lock();
	cq->armed = true;
	engine_expect();
	engine_unlock();
	return 0;
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

struct ibv_cq_ex *completion_create(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr, bool with_sgid)
{
	struct completion_queue *cq;

	if (attr->comp_mask || (attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!attr->cqe || attr->cqe > DEVICE_COMPLETIONS) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	attr->cqe = power_of_two(attr->cqe);
	if (cq)
		cq->ring = calloc(attr->cqe, sizeof(*cq->ring));
	if (!cq || !cq->ring) {
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	cq->mask = attr->cqe - 1;
	cq->reads_are_sends = context_of(context)->reads_are_sends;
	cq->ex.context = context;
	cq->ex.channel = attr->channel;
	cq->ex.cq_context = attr->cq_context;
	cq->ex.cqe = (int)attr->cqe;
	pthread_mutex_init(&cq->ex.mutex, NULL);
	pthread_cond_init(&cq->ex.cond, NULL);
	cq->ex.start_poll = start_poll;
	cq->ex.next_poll = next_poll;
	cq->ex.end_poll = end_poll;
	cq->ex.read_opcode = read_opcode;
	cq->ex.read_vendor_err = read_vendor_err;
	cq->ex.read_wc_flags = read_wc_flags;
	if (attr->wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cq->ex.read_byte_len = read_byte_len;
	if (attr->wc_flags & IBV_WC_EX_WITH_IMM)
		cq->ex.read_imm_data = read_imm_data;
	if (attr->wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cq->ex.read_qp_num = read_qp_num;
	if (attr->wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cq->ex.read_src_qp = read_src_qp;
	if (attr->wc_flags & IBV_WC_EX_WITH_SLID)
		cq->ex.read_slid = read_slid;
	if (attr->wc_flags & IBV_WC_EX_WITH_SL)
		cq->ex.read_sl = read_nothing;
	if (attr->wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cq->ex.read_dlid_path_bits = read_nothing;
	if (with_sgid)
		cq->dv.wc_read_sgid = read_sgid;
	if (attr->channel) {
		engine_lock();
		attr->channel->refcnt++;
		engine_unlock();
	}
	return &cq->ex;
}

struct ibv_cq_ex *completion_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	return completion_create(context, attr, false);
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int room, void *cq_context,
				    struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = room < 0 ? 0 : (uint32_t)room,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)vector,
	};

	return (struct ibv_cq *)completion_create(context, &attr, false);
}

EXPORT int ibv_destroy_cq(struct ibv_cq *verbs)
{
	struct completion_queue *cq = (struct completion_queue *)verbs;
	unsigned used;

	engine_lock();
	used = cq->queue_pairs;
	if (!used) {
		channel_forget(cq);
		if (cq->cq.channel)
			cq->cq.channel->refcnt--;
	}
	engine_unlock();
	if (used)
		return EBUSY;
	/* As libibverbs does: events that were got must be acknowledged first. */
	pthread_mutex_lock(&cq->cq.mutex);
	while (cq->cq.comp_events_completed != cq->events)
		pthread_cond_wait(&cq->cq.cond, &cq->cq.mutex);
	pthread_mutex_unlock(&cq->cq.mutex);
	pthread_mutex_destroy(&cq->cq.mutex);
	pthread_cond_destroy(&cq->cq.cond);
	free(cq->ring);
	free(cq);
	return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += count;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
