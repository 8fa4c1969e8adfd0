/* Flows: what a queue pair has under way to one peer. A posted work is cut into
 * packets, as many as the window has room for; each is sent, sent again, and ended
 * by an answer or because none came. Everything is under the engine's lock. */
#ifndef FLOW_H
#define FLOW_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "queue_pair.h"
#include "status.h"
#include "timers.h"
#include "wire.h"

enum packet_place {
	PLACE_SENT,    /* waits for an answer, or to be sent again */
	PLACE_DELAYED, /* the faults hold it back for a time */
	PLACE_HELD,    /* the control socket holds it back */
	PLACE_WAITING, /* the receiver was not ready, or the socket full */
};

struct packet {
	struct timer timer; /* first */
	struct packet *next; /* among the spare ones */
	struct flow *flow;
	struct work *work;
	enum wire_kind kind;
	enum packet_place place;
	uint32_t sequence, length, refusals;
	uint64_t offset;
	uint64_t since;  /* nobody answered */
	uint64_t emitted;
	uint64_t repeat; /* after this time */
	bool repeated;
};

/* flow is what goes to one peer. */
struct flow {
	struct flow *next;
	struct queue_pair *qp;
	struct in_addr ip;
	uint16_t port;
	uint32_t sequence, floor; /* the next one, and the oldest without an answer */
	struct packet *ring[WIRE_WINDOW];
	uint32_t flying, flying_bytes;
	uint64_t trip; /* until an answer comes, smoothed */
	struct work *first, *last; /* that still have to be cut */
};

/* flow_find returns the flow to a peer, NULL if there is none; flow_open makes it
 * then, and returns NULL if memory ran out. */
struct flow *flow_find(struct queue_pair *qp, struct in_addr ip, uint16_t port);
struct flow *flow_open(struct queue_pair *qp, struct in_addr ip, uint16_t port);
void flow_free(struct flow *flow);

/* flow_add puts a work at the end of the line. flow_push cuts what the window has
 * room for. */
void flow_add(struct flow *flow, struct work *work);
void flow_push(struct flow *flow);

/* flow_end ends all packets, and with everything also the work that has none yet. */
void flow_end(struct flow *flow, enum status status, bool everything);

/* flow_packet returns the packet with the sequence, NULL if it has come to its
 * end. */
struct packet *flow_packet(const struct flow *flow, uint32_t sequence);

/* packet_end is the end of a packet, with the status that it got. */
void packet_end(struct packet *packet, enum status status);

/* packet_launch sends a packet when the faults let it. */
void packet_launch(struct packet *packet);

/* packet_postpone sends it again later: the receiver was not ready. */
void packet_postpone(struct packet *packet);

/* packet_answered takes note of how long an answer took. */
void packet_answered(const struct packet *packet);

#endif
