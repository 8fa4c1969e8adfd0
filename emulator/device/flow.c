#include "flow.h"

#include <errno.h>
#include <stdlib.h>

#include "counters.h"
#include "engine.h"
#include "settings.h"
#include "srd.h"
#include "udp.h"

enum {
	/* In flight to one peer at most, so that its socket's buffer holds it. */
	FLYING = 128,
	FLYING_BYTES = 1 << 20,
};

/* Nanoseconds: until a packet is sent again, at least, if answers are not slow
 * lately, and doubled up to the most; until one is when the receiver is not ready,
 * likewise doubled; and when the socket is full. */
static const uint64_t repeat_least = 4000000, repeat_most = 128000000;
static const uint64_t ready_first = 100000, ready_most = 10000000;
static const uint64_t full = 100000;

static struct flow **bucket(struct queue_pair *qp, struct in_addr ip, uint16_t port)
{
	uint32_t hash = (ntohl(ip.s_addr) ^ (uint32_t)port << 16 ^ port) * 2654435761u;

	return &qp->flows[hash >> 26];
}

_Static_assert(FLOW_BUCKETS == 64, "six bits of the hash");

struct flow *flow_find(struct queue_pair *qp, struct in_addr ip, uint16_t port)
{
	struct flow *flow = *bucket(qp, ip, port);

	while (flow && (flow->ip.s_addr != ip.s_addr || flow->port != port))
		flow = flow->next;
	return flow;
}

struct flow *flow_open(struct queue_pair *qp, struct in_addr ip, uint16_t port)
{
	struct flow *flow = flow_find(qp, ip, port), **at = bucket(qp, ip, port);

	if (flow)
		return flow;
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	flow->qp = qp;
	flow->ip = ip;
	flow->port = port;
	flow->sequence = flow->floor = 1;
	flow->next = *at;
	*at = flow;
	return flow;
}

/* enqueue puts a work where it is cut: at the end, or first in line. */
static void enqueue(struct flow *flow, struct work *work, bool first)
{
	work->queued = true;
	if (first) {
		work->next = flow->first;
		flow->first = work;
		if (!flow->last)
			flow->last = work;
		return;
	}
	work->next = NULL;
	if (flow->last)
		flow->last->next = work;
	else
		flow->first = work;
	flow->last = work;
}

static void dequeue(struct flow *flow, struct work *work)
{
	struct work **at = &flow->first, *before = NULL;

	if (!work->queued)
		return;
	while (*at != work) {
		before = *at;
		at = &before->next;
	}
	*at = work->next;
	if (flow->last == work)
		flow->last = before;
	work->queued = false;
}

static void fire(struct timer *timer);

/* patience is how long to wait for an answer before a packet is sent again. On a
 * machine with too much to do answers are slow, and not lost. */
static uint64_t patience(const struct flow *flow)
{
	uint64_t wait = 4 * flow->trip;

	if (wait < repeat_least)
		return repeat_least;
	return wait < repeat_most / 2 ? wait : repeat_most / 2;
}

static struct packet *make(struct flow *flow, struct work *work, enum wire_kind kind, uint64_t offset, uint32_t length)
{
	struct queue_pair *qp = flow->qp;
	struct packet *packet = qp->spare;

	if (packet)
		qp->spare = packet->next;
	else
		packet = malloc(sizeof(*packet));
	if (!packet)
		return NULL;
	*packet = (struct packet){
		.timer.fire = fire,
		.flow = flow,
		.work = work,
		.kind = kind,
		.sequence = flow->sequence++,
		.offset = offset,
		.length = length,
		.since = engine_now(),
		.repeat = patience(flow),
	};
	flow->ring[packet->sequence % WIRE_WINDOW] = packet;
	flow->flying++;
	flow->flying_bytes += length;
	work->open++;
	return packet;
}

/* discard takes a packet out of the flow. */
static void discard(struct packet *packet)
{
	struct flow *flow = packet->flow;

	engine_cancel(&packet->timer);
	flow->ring[packet->sequence % WIRE_WINDOW] = NULL;
	flow->flying--;
	flow->flying_bytes -= packet->length;
	while (flow->floor != flow->sequence && !flow->ring[flow->floor % WIRE_WINDOW])
		flow->floor++;
	packet->work->open--;
	packet->next = flow->qp->spare;
	flow->qp->spare = packet;
}

/* settle completes a work that has no packet open and none to come. */
static void settle(struct flow *flow, struct work *work)
{
	if (work->open)
		return;
	if (!work->status && !work->all_cut) {
		/* What is left, if not in line already, is the notice. */
		if (!work->queued)
			enqueue(flow, work, true);
		return;
	}
	queue_pair_complete(work, work->status);
}

void packet_end(struct packet *packet, enum status status)
{
	struct flow *flow = packet->flow;
	struct work *work = packet->work;

	discard(packet);
	if (status && !work->status)
		work->status = status;
	if (work->status)
		dequeue(flow, work);
	settle(flow, work);
}

static struct wire_header header_of(const struct packet *packet)
{
	const struct work *work = packet->work;
	const struct queue_pair *qp = work->qp;
	struct wire_header header = srd_header(qp, packet->kind);

	header.sequence = packet->sequence;
	header.floor = packet->flow->floor;
	header.qkey = work->qkey;
	header.immediate = work->immediate;
	header.address = work->remote + packet->offset;
	header.key = work->rkey;
	header.length = packet->length;
	header.total = (uint32_t)work->length;
	if (work->has_immediate && (packet->kind == WIRE_SEND || packet->kind == WIRE_NOTICE))
		header.flags |= WIRE_IMMEDIATE;
	if (qp->rnr_retry != 7 && packet->refusals >= qp->rnr_retry)
		header.flags |= WIRE_LAST_TRY;
	return header;
}

/* emit sends a packet now. */
static void emit(struct packet *packet)
{
	struct wire_header header = header_of(packet);
	struct iovec parts[1 + DEVICE_SEND_SGE];
	struct flow *flow = packet->flow;
	int count = 0, err = 0;

	if (packet->kind == WIRE_SEND || packet->kind == WIRE_WRITE)
		count = srd_part(packet->work, packet->offset, packet->length, 0, parts + 1);
	if (count < 0) {
		packet_end(packet, STATUS_INVALID_LKEY);
		return;
	}
	packet->place = PLACE_SENT;
	if (!faults_lose(&flow->qp->faults, flow->ip, flow->port))
		err = udp_send(flow->qp, flow->ip, flow->port, &header, parts, 1 + count);
	if (err == EFAULT) {
		packet_end(packet, STATUS_INVALID_LKEY);
	} else if (err == EAGAIN || err == ENOBUFS) {
		packet->place = PLACE_WAITING;
		engine_set(&packet->timer, engine_now() + full);
	} else {
		/* Other errors are the network's, and may pass. */
		packet->emitted = engine_now();
		engine_set(&packet->timer, packet->emitted + packet->repeat);
	}
}

void packet_launch(struct packet *packet)
{
	uint64_t delay;

	if (faults_held()) {
		packet->place = PLACE_HELD;
		return;
	}
	delay = faults_delay(&packet->flow->qp->faults);
	if (!delay) {
		emit(packet);
		return;
	}
	packet->place = PLACE_DELAYED;
	engine_set(&packet->timer, engine_now() + delay);
}

static void fire(struct timer *timer)
{
	struct packet *packet = (struct packet *)timer;
	struct flow *flow = packet->flow;

	switch (packet->place) {
	case PLACE_DELAYED:
		emit(packet);
		break;
	case PLACE_SENT:
		if (engine_now() - packet->since >= settings()->timeout) {
			packet_end(packet, STATUS_UNRESPONSIVE);
			break;
		}
		counters_add(COUNTER_REPEATED, 1);
		packet->repeated = true;
		packet->repeat = packet->repeat * 2 < repeat_most ? packet->repeat * 2 : repeat_most;
		packet_launch(packet);
		break;
	default:
		packet_launch(packet);
	}
	flow_push(flow);
}

/* cut makes the next packet of a work and launches it; false if memory ran out.
 * Work of no length has one packet all the same. */
static bool cut(struct flow *flow, struct work *work)
{
	static const enum wire_kind kinds[] = {
		[OPERATION_SEND] = WIRE_SEND,
		[OPERATION_READ] = WIRE_READ,
		[OPERATION_WRITE] = WIRE_WRITE,
	};
	bool announces = work->operation == OPERATION_WRITE && work->has_immediate;
	bool notice = announces && work->cut == work->length;
	uint64_t left = work->length - work->cut;
	uint32_t length = left < WIRE_CHUNK ? (uint32_t)left : WIRE_CHUNK;
	struct packet *packet = make(flow, work, notice ? WIRE_NOTICE : kinds[work->operation], work->cut, length);

	if (!packet)
		return false;
	work->cut += length;
	/* A write that is announced comes back for its notice when all of its data
	 * was acknowledged. */
	work->all_cut = work->cut == work->length && (notice || !announces);
	if (work->cut == work->length)
		dequeue(flow, work);
	/* Last, for the packet may come to its end in there, and the work with it. */
	packet_launch(packet);
	return true;
}

void flow_push(struct flow *flow)
{
	uint32_t room = flow->qp->socket_room < FLYING_BYTES ? flow->qp->socket_room : FLYING_BYTES;

	while (flow->first && flow->flying < FLYING && flow->flying_bytes < room &&
	       flow->sequence - flow->floor < WIRE_WINDOW)
		if (!cut(flow, flow->first))
			return;
}

void flow_add(struct flow *flow, struct work *work)
{
	enqueue(flow, work, false);
}

struct packet *flow_packet(const struct flow *flow, uint32_t sequence)
{
	struct packet *packet = flow->ring[sequence % WIRE_WINDOW];

	return packet && packet->sequence == sequence ? packet : NULL;
}

void flow_end(struct flow *flow, enum status status, bool everything)
{
	for (uint32_t sequence = flow->floor; sequence != flow->sequence; sequence++) {
		struct packet *packet = flow_packet(flow, sequence);

		if (packet)
			packet_end(packet, status);
	}
	while (everything && flow->first) {
		struct work *work = flow->first;

		dequeue(flow, work);
		queue_pair_complete(work, status);
	}
}

void packet_postpone(struct packet *packet)
{
	uint32_t times = packet->refusals < 8 ? packet->refusals : 8;
	uint64_t wait = ready_first << times;

	packet->refusals++;
	packet->since = engine_now();
	packet->repeat = patience(packet->flow);
	packet->repeated = false;
	packet->place = PLACE_WAITING;
	engine_set(&packet->timer, packet->since + (wait < ready_most ? wait : ready_most));
}

void packet_answered(const struct packet *packet)
{
	struct flow *flow = packet->flow;
	uint64_t trip = engine_now() - packet->emitted;

	/* Which of two tries an answer is for cannot be told. */
	if (!packet->repeated && packet->place == PLACE_SENT)
		flow->trip = flow->trip ? flow->trip - flow->trip / 8 + trip / 8 : trip;
}

void flow_free(struct flow *flow)
{
	for (unsigned i = 0; i < WIRE_WINDOW; i++) {
		if (!flow->ring[i])
			continue;
		engine_cancel(&flow->ring[i]->timer);
		free(flow->ring[i]);
	}
	free(flow);
}
