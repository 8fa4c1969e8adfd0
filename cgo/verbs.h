// What requests.c has to know of libibverbs, which programs are not built with. The layouts
// are those of infiniband/verbs.h, whose names the members have; they are part of its
// binary interface. emulator/tests compares them.
#ifndef WEFT_VERBS_H
#define WEFT_VERBS_H

#include <pthread.h>
#include <stdint.h>

enum { VERBS_SUCCESS = 0 };   // IBV_WC_SUCCESS
enum { VERBS_FLUSHED = 5 };   // IBV_WC_WR_FLUSH_ERR
enum { VERBS_RECEIVE = 128 }; // IBV_WC_RECV

struct verbs_sge {
	uint64_t addr;
	uint32_t length, lkey;
};

struct verbs_recv { // ibv_recv_wr
	uint64_t wr_id;
	struct verbs_recv *next;
	struct verbs_sge *sg_list;
	int num_sge;
};

struct verbs_poll_attr; // ibv_poll_cq_attr

struct verbs_cq { // ibv_cq_ex
	struct verbs_device *context;
	void *channel;
	void *cq_context;
	uint32_t handle;
	int cqe;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t comp_events_completed, async_events_completed;
	uint32_t comp_mask;
	int status;
	uint64_t wr_id;
	int (*start_poll)(struct verbs_cq *cq, struct verbs_poll_attr *attr);
	int (*next_poll)(struct verbs_cq *cq);
	void (*end_poll)(struct verbs_cq *cq);
	int (*read_opcode)(struct verbs_cq *cq);
	uint32_t (*read_vendor_err)(struct verbs_cq *cq);
	uint32_t (*read_byte_len)(struct verbs_cq *cq);
};

struct verbs_qp { // ibv_qp
	struct verbs_device *context;
	void *qp_context;
	void *pd;
	struct verbs_cq *send_cq, *recv_cq;
};

struct verbs_qp_attributes { // ibv_qp_attr
	int state; // qp_state
	char rest[252]; // more than there is
};

enum { VERBS_ERROR = 6 }; // IBV_QPS_ERR
enum { VERBS_STATE = 1 }; // IBV_QP_STATE

// ibv_modify_qp
typedef int verbs_modify(struct verbs_qp *qp, struct verbs_qp_attributes *to, int mask);

struct verbs_device { // ibv_context
	void *device;
	void (*before_post_recv[26])(void);
	int (*post_recv)(struct verbs_qp *qp, struct verbs_recv *first,
			 struct verbs_recv **bad);
};

// efadv_query_device of libefa (infiniband/efadv.h), and what it says.
struct efa_attributes { // efadv_device_attr
	uint64_t comp_mask;
	uint32_t max_sq_wr, max_rq_wr;
	uint16_t max_sq_sge, max_rq_sge;
	uint16_t inline_buf_size;
	uint8_t reserved[2];
	uint32_t device_caps;
	uint32_t max_rdma_size;
};

enum { EFA_READS = 1 }; // EFADV_DEVICE_ATTR_CAPS_RDMA_READ

typedef int efa_query(struct verbs_device *context, struct efa_attributes *attributes,
		      uint32_t size);

#endif
