/* Queue pairs: SRD and UD, their states, and the work that was posted. */
#ifndef QUEUE_PAIR_H
#define QUEUE_PAIR_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "completion.h"
#include "device.h"
#include "faults.h"
#include "wire.h"

struct flow;
struct source;

/* work is a posted send, read or write, until it completes. */
struct work {
	struct work *next;
	struct queue_pair *qp;
	uint64_t wr_id;
	enum operation operation;
	bool inlined, has_immediate, addressed;
	uint8_t parts;
	struct ibv_sge sge[DEVICE_SEND_SGE];
	uint8_t data[DEVICE_INLINE];
	uint32_t immediate;
	uint64_t length;
	/* Where to. */
	struct in_addr ip;
	uint32_t qpn, qkey;
	uint64_t remote;
	uint32_t rkey;
	/* How far it is, for flow.c. */
	uint64_t cut;  /* bytes that were put into packets */
	uint32_t open; /* packets without an answer */
	bool all_cut, queued;
	enum status status;
};

struct receive {
	uint64_t wr_id;
	uint8_t parts;
	struct ibv_sge sge;
};

enum { FLOW_BUCKETS = 64, SOURCE_BUCKETS = 64, ANSWERS = 32 };

/* answer is an acknowledgement that waits for the end of a batch. */
struct answer {
	struct sockaddr_in to;
	struct wire_header header;
};

struct queue_pair {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
	};
	struct device *device;
	int id, socket;
	bool datagrams;    /* UD */
	bool dead;         /* a copy in the child of a fork */
	bool all_signaled;
	uint64_t incarnation;
	uint32_t socket_room; /* of the other ends' sockets too, presumably */
	uint32_t qkey;
	uint8_t rnr_retry;
	struct completion_queue *send_cq, *receive_cq;

	/* Sends: used counts from the post until the completion was polled. */
	struct work *works, *free;
	uint32_t send_room, send_used, send_parts, inline_room;
	/* Between wr_start and wr_complete. */
	pthread_mutex_t staging;
	struct work *staged, *staged_last;
	uint32_t staged_count;
	int staging_error;

	struct receive *receives;
	uint32_t receive_room, receive_used, receive_head, receive_tail, receive_parts;

	struct flow *flows[FLOW_BUCKETS];
	struct source *sources[SOURCE_BUCKETS];
	unsigned source_count;
	/* Answers that were lost on purpose and not asked for again, and when the last
	 * one was. */
	uint32_t lost_answers;
	uint64_t lost_answer;
	struct packet *spare; /* packets to use again */
	struct answer answers[ANSWERS];
	unsigned answer_count;
	struct faults faults;
};

/* queue_pair_extended is the short description in the form of the long one. */
struct ibv_qp_init_attr_ex queue_pair_extended(struct ibv_pd *pd, const struct ibv_qp_init_attr *attr);

struct ibv_qp *queue_pair_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *queue_pair_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* Under the engine's lock: */

/* queue_pair_complete ends a posted work. */
void queue_pair_complete(struct work *work, enum status status);

/* queue_pair_received ends the oldest posted receive. source_ip is 0 for one that
 * was flushed. */
void queue_pair_received(struct queue_pair *qp, struct completion *completion, struct in_addr source);

/* queue_pair_completed gives the place of a polled completion back. */
void queue_pair_completed(struct queue_pair *qp, bool receive);

/* queue_pair_receiving and _sending say whether the state allows it. */
bool queue_pair_receiving(const struct queue_pair *qp);
bool queue_pair_sending(const struct queue_pair *qp);

/* queue_pair_abandon leaves a queue pair to the parent of a fork. */
void queue_pair_abandon(struct queue_pair *qp);

#endif
