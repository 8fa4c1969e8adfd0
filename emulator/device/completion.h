/* Completion queues, and the channels that announce completions. */
#ifndef COMPLETION_H
#define COMPLETION_H

#include <infiniband/efadv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "status.h"

struct queue_pair;
struct channel;

enum operation { OPERATION_SEND, OPERATION_READ, OPERATION_WRITE };

struct completion {
	struct queue_pair *qp; /* NULL once it was destroyed */
	uint64_t wr_id;
	enum status status;
	enum operation operation;
	bool receive;
	bool has_immediate;
	uint32_t immediate; /* in the byte order that the sender gave */
	uint32_t qpn, length;
	/* Of a receive: who sent. */
	uint32_t source_qpn;
	uint16_t source_number;
	union ibv_gid source;
};

struct completion_queue {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	/* Later versions of efadv_cq are longer. */
	union {
		struct efadv_cq dv;
		void *room[8];
	};
	struct completion *ring, current;
	uint32_t mask, head, tail;
	bool armed, overrun, announced, reads_are_sends;
	uint32_t events;      /* got from the channel */
	unsigned queue_pairs; /* that complete here */
	struct completion_queue *next_announced;
};

/* Under the engine's lock: */

void completion_push(struct completion_queue *cq, const struct completion *completion);

/* completion_forget removes what a queue pair completed. */
void completion_forget(struct completion_queue *cq, const struct queue_pair *qp);

/* What verbs calls through its tables: */

struct ibv_cq_ex *completion_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_cq_ex *completion_create(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr, bool with_sgid);
int completion_poll(struct ibv_cq *cq, int room, struct ibv_wc *into);
int completion_arm(struct ibv_cq *cq, int solicited_only);

/* Under the engine's lock: channels. */
void channel_announce(struct completion_queue *cq);
void channel_forget(struct completion_queue *cq);

#endif
