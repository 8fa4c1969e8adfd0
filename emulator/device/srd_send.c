/* SRD, where the work was posted: what a device refuses at once, what becomes of
 * answers, and the ends that work comes to. */
#include <errno.h>
#include <stdlib.h>

#include "counters.h"
#include "engine.h"
#include "flow.h"
#include "memory.h"
#include "settings.h"
#include "srd.h"

struct wire_header srd_header(const struct queue_pair *qp, enum wire_kind kind)
{
	return (struct wire_header){
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.kind = (uint8_t)kind,
		.incarnation = qp->incarnation,
	};
}

int srd_part(const struct work *work, uint64_t offset, uint32_t length, unsigned access, struct iovec *into)
{
	int count = 0;

	if (work->inlined) {
		into[0] = (struct iovec){(void *)(uintptr_t)(work->data + offset), length};
		return 1;
	}
	for (unsigned i = 0; i < work->parts && length; i++) {
		const struct ibv_sge *part = &work->sge[i];
		uint32_t here;
		void *at;

		if (offset >= part->length) {
			offset -= part->length;
			continue;
		}
		here = part->length - (uint32_t)offset;
		if (here > length)
			here = length;
		at = region_find(work->qp->qp.pd, part->lkey, part->addr + offset, here, access);
		if (!at)
			return -1;
		into[count++] = (struct iovec){at, here};
		length -= here;
		offset = 0;
	}
	return count;
}

/* datagram sends UD's only packet. It is gone, whatever becomes of it. */
static void datagram(struct work *work)
{
	struct wire_header header = srd_header(work->qp, WIRE_DATAGRAM);
	struct queue_pair *qp = work->qp;
	struct iovec parts[1 + DEVICE_SEND_SGE];
	int count = srd_part(work, 0, (uint32_t)work->length, 0, parts + 1);
	int err = EFAULT;

	header.qkey = work->qkey;
	header.length = (uint32_t)work->length;
	header.immediate = work->immediate;
	header.flags = work->has_immediate ? WIRE_IMMEDIATE : 0;
	if (count >= 0) {
		err = 0;
		if (!faults_lose(&qp->faults, work->ip, (uint16_t)work->qpn))
			err = udp_send(qp, work->ip, (uint16_t)work->qpn, &header, parts, 1 + count);
	}
	queue_pair_complete(work, err == EFAULT ? STATUS_INVALID_LKEY : STATUS_OK);
}

/* refuse says what a device finds wrong in a work before anything is sent. */
static enum status refuse(const struct work *work)
{
	unsigned access = work->operation == OPERATION_READ ? IBV_ACCESS_LOCAL_WRITE : 0;

	if (!work->addressed)
		return STATUS_INVALID_AH;
	for (unsigned i = 0; !work->inlined && i < work->parts; i++) {
		const struct ibv_sge *part = &work->sge[i];

		if (part->length && !region_find(work->qp->qp.pd, part->lkey, part->addr, part->length, access))
			return STATUS_INVALID_LKEY;
	}
	if (work->length > (work->operation == OPERATION_SEND ? (uint64_t)WIRE_MESSAGE : (uint64_t)DEVICE_RDMA))
		return STATUS_BAD_LENGTH;
	return STATUS_OK;
}

void srd_post(struct work *work)
{
	enum status status = refuse(work);
	struct flow *flow;

	if (status) {
		queue_pair_complete(work, status);
		return;
	}
	if (work->qp->datagrams) {
		datagram(work);
		return;
	}
	/* A number that no port has. */
	if (!work->qpn || work->qpn > 65535) {
		queue_pair_complete(work, STATUS_REMOTE_BAD_QPN);
		return;
	}
	flow = flow_open(work->qp, work->ip, (uint16_t)work->qpn);
	if (!flow) {
		queue_pair_complete(work, STATUS_QP_INTERNAL);
		return;
	}
	flow_add(flow, work);
	flow_push(flow);
}

/* data puts what was read where it belongs. */
static enum status data(const struct packet *packet, const struct udp_packet *answer)
{
	struct iovec parts[DEVICE_SEND_SGE];
	const uint8_t *from = answer->payload;
	int count = srd_part(packet->work, packet->offset, packet->length, IBV_ACCESS_LOCAL_WRITE, parts);

	if (count < 0)
		return STATUS_INVALID_LKEY;
	for (int i = 0; i < count; i++) {
		if (!memory_copy(parts[i].iov_base, from, parts[i].iov_len))
			return STATUS_INVALID_LKEY;
		from += parts[i].iov_len;
	}
	return STATUS_OK;
}

void srd_answered(struct queue_pair *qp, const struct udp_packet *answer)
{
	const struct wire_header *header = &answer->header;
	struct flow *flow = flow_find(qp, answer->from.sin_addr, ntohs(answer->from.sin_port));
	struct packet *packet = flow ? flow_packet(flow, header->sequence) : NULL;

	if (header->answered != qp->incarnation || !packet) {
		counters_add(header->answered == qp->incarnation ? COUNTER_DUPLICATES : COUNTER_STRANGE, 1);
		return;
	}
	packet_answered(packet);
	if (header->kind == WIRE_DATA) {
		if (packet->kind != WIRE_READ || answer->length != packet->length) {
			counters_add(COUNTER_STRANGE, 1);
			return;
		}
		packet_end(packet, data(packet, answer));
	} else if (header->status == WIRE_NOT_READY) {
		/* One that says so twice is not asked twice. */
		if (packet->place == PLACE_SENT)
			packet_postpone(packet);
	} else {
		packet_end(packet, header->status < STATUS_COUNT ? (enum status)header->status : STATUS_REMOTE_BAD_STATUS);
	}
	flow_push(flow);
}

void srd_refused(struct queue_pair *qp, struct in_addr ip, uint16_t port)
{
	struct flow *flow = flow_find(qp, ip, port);

	if (!flow || faults_cut_off(ip, port))
		return;
	flow_end(flow, STATUS_REMOTE_BAD_QPN, false);
	flow_push(flow);
}

void srd_flush(struct queue_pair *qp)
{
	for (unsigned i = 0; i < FLOW_BUCKETS; i++)
		for (struct flow *flow = qp->flows[i]; flow; flow = flow->next)
			flow_end(flow, STATUS_FLUSHED, true);
}

void srd_release(struct queue_pair *qp)
{
	for (unsigned i = 0; i < FLOW_BUCKETS; i++)
		for (struct flow *flow = qp->flows[i]; flow; flow = flow->next) {
			uint32_t to = flow->sequence;

			for (uint32_t sequence = flow->floor; sequence != to; sequence++) {
				struct packet *packet = flow_packet(flow, sequence);

				if (!packet || packet->place != PLACE_HELD)
					continue;
				packet->since = engine_now();
				packet_launch(packet);
			}
			flow_push(flow);
		}
}

void srd_free(struct queue_pair *qp)
{
	for (unsigned i = 0; i < FLOW_BUCKETS; i++) {
		struct flow *flow = qp->flows[i];

		qp->flows[i] = NULL;
		while (flow) {
			struct flow *next = flow->next;

			flow_free(flow);
			flow = next;
		}
	}
	while (qp->spare) {
		struct packet *packet = qp->spare;

		qp->spare = packet->next;
		free(packet);
	}
	srd_forget_sources(qp);
}
