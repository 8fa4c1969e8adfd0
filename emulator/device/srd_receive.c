/* SRD, where packets of peers arrive: each has its effect once, and an answer as
 * often as it comes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "counters.h"
#include "decisions.h"
#include "engine.h"
#include "memory.h"
#include "srd.h"

enum {
	/* Senders that a queue pair remembers; of more, the one that was silent for
	 * the longest is forgotten. */
	SOURCES = 8192,
	/* A UD message arrives behind room for a header of this length. */
	GRH = 40,
};

/* source is a queue pair that sends to this one. */
struct source {
	struct source *next;
	struct in_addr ip;
	uint16_t port;
	uint64_t incarnation;
	uint64_t heard;
	struct decisions decisions;
};

static struct source **bucket(struct queue_pair *qp, struct in_addr ip, uint16_t port)
{
	uint32_t hash = (ntohl(ip.s_addr) ^ (uint32_t)port << 16 ^ port) * 2654435761u;

	return &qp->sources[hash >> 26];
}

_Static_assert(SOURCE_BUCKETS == 64, "six bits of the hash");

static void forget_oldest(struct queue_pair *qp)
{
	struct source **oldest = NULL, *gone;

	for (unsigned i = 0; i < SOURCE_BUCKETS; i++)
		for (struct source **at = &qp->sources[i]; *at; at = &(*at)->next)
			if (!oldest || (*at)->heard < (*oldest)->heard)
				oldest = at;
	gone = *oldest;
	*oldest = gone->next;
	free(gone);
	qp->source_count--;
}

/* find returns the sender of a packet, NULL if the packet is of an earlier queue
 * pair with the same address, or memory ran out. */
static struct source *find(struct queue_pair *qp, const struct udp_packet *packet)
{
	struct in_addr ip = packet->from.sin_addr;
	uint16_t port = ntohs(packet->from.sin_port);
	struct source *source = *bucket(qp, ip, port);

	while (source && (source->ip.s_addr != ip.s_addr || source->port != port))
		source = source->next;
	if (source && source->incarnation > packet->header.incarnation)
		return NULL;
	if (!source) {
		struct source **at;

		if (qp->source_count == SOURCES)
			forget_oldest(qp);
		source = calloc(1, sizeof(*source));
		if (!source)
			return NULL;
		at = bucket(qp, ip, port);
		source->ip = ip;
		source->port = port;
		source->next = *at;
		*at = source;
		qp->source_count++;
	}
	if (source->incarnation != packet->header.incarnation) {
		source->incarnation = packet->header.incarnation;
		decisions_start(&source->decisions, packet->header.floor);
	}
	source->heard = engine_now();
	decisions_advance(&source->decisions, packet->header.floor);
	return source;
}

void srd_forget_sources(struct queue_pair *qp)
{
	for (unsigned i = 0; i < SOURCE_BUCKETS; i++) {
		while (qp->sources[i]) {
			struct source *source = qp->sources[i];

			qp->sources[i] = source->next;
			free(source);
		}
	}
	qp->source_count = 0;
}

/* send_answers sends the acknowledgements of a batch. */
static void send_answers(struct queue_pair *qp)
{
	if (qp->answer_count)
		udp_answer(qp, qp->answers, qp->answer_count);
	qp->answer_count = 0;
}

static void answer(struct queue_pair *qp, const struct udp_packet *to, uint8_t status)
{
	struct answer *answer;

	if (faults_lose(&qp->faults, to->from.sin_addr, ntohs(to->from.sin_port))) {
		qp->lost_answers++;
		qp->lost_answer = engine_now();
		return;
	}
	if (qp->answer_count == ANSWERS)
		send_answers(qp);
	answer = &qp->answers[qp->answer_count++];
	answer->to = to->from;
	answer->header = srd_header(qp, WIRE_ACK);
	answer->header.answered = to->header.incarnation;
	answer->header.sequence = to->header.sequence;
	answer->header.status = status;
}

/* deliver puts a payload into the oldest posted receive, and completes that. It
 * returns what to tell the sender. */
static enum status deliver(struct queue_pair *qp, const struct udp_packet *packet, uint32_t room_before)
{
	const struct receive *receive = &qp->receives[qp->receive_head % qp->receive_room];
	const struct wire_header *header = &packet->header;
	uint64_t needed = (uint64_t)room_before + packet->length;
	struct completion completion = {
		.operation = header->kind == WIRE_NOTICE ? OPERATION_WRITE : OPERATION_SEND,
		.has_immediate = header->flags & WIRE_IMMEDIATE,
		.immediate = header->immediate,
		.length = header->kind == WIRE_NOTICE ? header->total : (uint32_t)needed,
		.source_qpn = ntohs(packet->from.sin_port),
	};
	enum status told = STATUS_OK;
	const struct ibv_sge *sge = &receive->sge;
	uint32_t room = receive->parts ? sge->length : 0;
	uint8_t *to = NULL;

	if (needed > room) {
		completion.status = STATUS_BAD_LENGTH;
		told = STATUS_REMOTE_BAD_LENGTH;
	} else if (needed) {
		to = region_find(qp->qp.pd, sge->lkey, sge->addr, needed, IBV_ACCESS_LOCAL_WRITE);
		if (!to || !memory_copy(to + room_before, packet->payload, packet->length)) {
			completion.status = STATUS_INVALID_LKEY;
			told = STATUS_REMOTE_BAD_STATUS;
		}
	}
	queue_pair_received(qp, &completion, packet->from.sin_addr);
	return told;
}

/* receive is a message, or the notice of a write: it takes a posted receive. */
static int receive(struct queue_pair *qp, const struct udp_packet *packet)
{
	bool none = qp->receive_head == qp->receive_tail;

	if (none)
		counters_add(COUNTER_NOT_READY, 1);
	if (none || faults_refuse(&qp->faults))
		return packet->header.flags & WIRE_LAST_TRY ? STATUS_REMOTE_NOT_READY : WIRE_NOT_READY;
	return deliver(qp, packet, 0);
}

/* remote is the memory that a read or a write of a peer is about, NULL if it may
 * not; status says why. */
static void *remote(struct queue_pair *qp, const struct udp_packet *packet, unsigned access, enum status *status)
{
	const struct wire_header *header = &packet->header;
	void *memory;

	/* A device knows only those it has an address handle of. */
	*status = STATUS_REMOTE_UNKNOWN_PEER;
	if (address_number(qp->device, packet->from.sin_addr) == ADDRESS_UNKNOWN)
		return NULL;
	memory = region_find(qp->qp.pd, header->key, header->address, header->length, access);
	*status = memory ? STATUS_OK : STATUS_REMOTE_BAD_ADDRESS;
	return memory;
}

static int write_into(struct queue_pair *qp, const struct udp_packet *packet)
{
	enum status status;
	void *memory = remote(qp, packet, IBV_ACCESS_REMOTE_WRITE, &status);

	if (memory && !memory_copy(memory, packet->payload, packet->length))
		status = STATUS_REMOTE_BAD_ADDRESS;
	return status;
}

/* read_from answers with the data. It needs no memory of decisions, for it may be
 * done twice. */
static void read_from(struct queue_pair *qp, const struct udp_packet *packet)
{
	struct in_addr ip = packet->from.sin_addr;
	uint16_t port = ntohs(packet->from.sin_port);
	struct wire_header header = srd_header(qp, WIRE_DATA);
	struct iovec parts[2];
	enum status status;
	void *memory = remote(qp, packet, IBV_ACCESS_REMOTE_READ, &status);

	if (!memory) {
		answer(qp, packet, status);
		return;
	}
	if (faults_lose(&qp->faults, ip, port))
		return;
	header.answered = packet->header.incarnation;
	header.sequence = packet->header.sequence;
	header.length = packet->header.length;
	parts[1] = (struct iovec){memory, packet->header.length};
	/* What does not fit into the socket is asked for again. */
	if (udp_send(qp, ip, port, &header, parts, 2) == EFAULT)
		answer(qp, packet, STATUS_REMOTE_BAD_ADDRESS);
}

/* well_formed says whether the lengths and sequences of a packet are what this
 * device would send. */
static bool well_formed(const struct udp_packet *packet)
{
	const struct wire_header *header = &packet->header;

	if (header->sequence - header->floor >= WIRE_WINDOW)
		return false;
	switch (header->kind) {
	case WIRE_SEND:
		return header->length == packet->length && packet->length <= WIRE_MESSAGE;
	case WIRE_WRITE:
		return header->length == packet->length;
	case WIRE_NOTICE:
		return !packet->length && header->total <= DEVICE_RDMA;
	default:
		return !packet->length && header->length <= WIRE_CHUNK;
	}
}

static void requested(struct queue_pair *qp, const struct udp_packet *packet)
{
	const struct wire_header *header = &packet->header;
	struct source *source;
	int decision;

	if (!well_formed(packet)) {
		counters_add(COUNTER_STRANGE, 1);
		return;
	}
	if (qp->datagrams || !queue_pair_receiving(qp) || header->qkey != qp->qkey) {
		answer(qp, packet, STATUS_REMOTE_BAD_QPN);
		return;
	}
	if (header->kind == WIRE_READ) {
		read_from(qp, packet);
		return;
	}
	source = find(qp, packet);
	decision = source ? decisions_look(&source->decisions, header->sequence) : DECISION_KNOWN;
	if (decision == DECISION_NONE) {
		decision = header->kind == WIRE_WRITE ? write_into(qp, packet) : receive(qp, packet);
		if (decision != WIRE_NOT_READY)
			decisions_make(&source->decisions, header->sequence, (uint8_t)decision);
	} else {
		counters_add(COUNTER_DUPLICATES, 1);
		if (qp->lost_answers)
			qp->lost_answers--;
	}
	if (decision >= 0)
		answer(qp, packet, (uint8_t)decision);
}

/* datagram is UD: what nobody waits for is lost. */
static void datagram(struct queue_pair *qp, const struct udp_packet *packet)
{
	if (!qp->datagrams || !queue_pair_receiving(qp) || packet->header.qkey != qp->qkey ||
	    packet->length > WIRE_MESSAGE || qp->receive_head == qp->receive_tail)
		return;
	deliver(qp, packet, GRH);
}

static void dispatch(struct queue_pair *qp, const struct udp_packet *packet)
{
	if (faults_cut_off(packet->from.sin_addr, ntohs(packet->from.sin_port)))
		return;
	switch (packet->header.kind) {
	case WIRE_SEND:
	case WIRE_WRITE:
	case WIRE_NOTICE:
	case WIRE_READ:
		requested(qp, packet);
		break;
	case WIRE_ACK:
	case WIRE_DATA:
		srd_answered(qp, packet);
		break;
	case WIRE_DATAGRAM:
		datagram(qp, packet);
		break;
	default:
		counters_add(COUNTER_STRANGE, 1);
	}
}

void srd_drain(struct queue_pair *qp, uint32_t errors)
{
	/* A bound, so that one busy queue pair does not keep others waiting. */
	enum { ROUNDS = 8 };
	struct udp_packet packets[UDP_BATCH];
	struct in_addr ip;
	uint16_t port;
	int n = UDP_BATCH;

	for (int round = 0; round < ROUNDS && n == UDP_BATCH; round++) {
		n = udp_receive(qp, packets);
		for (int i = 0; i < n; i++)
			dispatch(qp, &packets[i]);
		send_answers(qp);
	}
	for (int round = 0; errors && round < ROUNDS && udp_refused(qp->socket, &ip, &port); round++)
		srd_refused(qp, ip, port);
}
