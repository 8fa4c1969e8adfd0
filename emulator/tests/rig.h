/* Queue pairs with all that they need, for tests that call verbs as libfabric's
 * efa provider does. */
#ifndef RIG_H
#define RIG_H

#include <infiniband/efadv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RIG_MEMORY = 8 << 20, RIG_QKEY = 0x11111111 };

/* end is an SRD queue pair in RTS, its completion queue, and memory with a
 * registration that allows everything. */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* of this end's own device: of every end of it */
	uint8_t *memory;
};

struct options {
	unsigned device, completions, sends, receives, rnr_retry;
	bool with_channel;
	bool unconnected; /* leave the queue pair in RESET */
	bool datagrams;
};

extern const struct options ordinary;

void end_open(struct end *end, const struct options *options);
void end_close(struct end *end);

/* end_state moves the queue pair, with what the kernel asks for. It returns what
 * ibv_modify_qp does. */
int end_state(struct end *end, enum ibv_qp_state state, unsigned rnr_retry);

int end_receive(struct end *end, uint64_t id, size_t offset, uint32_t length);

/* The posts say what wr_complete does. The memory is the end's own. */
int end_send(struct end *end, const struct end *to, uint64_t id, size_t offset, uint32_t length);
int end_send_imm(struct end *end, const struct end *to, uint64_t id, uint32_t immediate);
int end_read(struct end *end, const struct end *from, uint64_t id, size_t offset, uint32_t length, size_t remote);
int end_write(struct end *end, const struct end *to, uint64_t id, size_t offset, uint32_t length, size_t remote);
int end_write_imm(struct end *end, const struct end *to, uint64_t id, size_t offset, uint32_t length,
		  size_t remote, uint32_t immediate);

struct done {
	uint64_t id;
	enum ibv_wc_status status;
	uint32_t vendor, length, immediate, slid, source;
	enum ibv_wc_opcode opcode;
	unsigned flags;
};

/* end_poll is whether there was a completion. */
bool end_poll(struct end *end, struct done *done);

/* end_await waits for a completion, and fails after 30 s. */
struct done end_await(struct end *end);

/* fill writes bytes that depend on the seed; filled says whether they are there. */
void fill(uint8_t *memory, size_t length, unsigned seed);
bool filled(const uint8_t *memory, size_t length, unsigned seed);

#endif
