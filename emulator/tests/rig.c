#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"

const struct options ordinary = {.completions = 4096, .sends = 1024, .receives = 2048, .rnr_retry = 7};

int end_state(struct end *end, enum ibv_qp_state state, unsigned rnr_retry)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1, .qkey = RIG_QKEY, .rnr_retry = (uint8_t)rnr_retry};
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	if (state == IBV_QPS_RTS)
		mask |= IBV_QP_SQ_PSN | (end->qp->qp_type == IBV_QPT_UD ? 0 : IBV_QP_RNR_RETRY);
	return ibv_modify_qp(end->qp, &attr, mask);
}

static void open_queue_pair(struct end *end, const struct options *options)
{
	struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD};
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(end->cq),
		.recv_cq = ibv_cq_ex_to_cq(end->cq),
		.cap = {options->sends, options->receives, 2, 1, 32},
		.qp_type = options->datagrams ? IBV_QPT_UD : IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = end->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};

	if (options->datagrams) {
		end->qp = ibv_create_qp_ex(end->context, &attr);
	} else {
		attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
		end->qp = efadv_create_qp_ex(end->context, &attr, &efa, sizeof(efa));
	}
	CHECK(end->qp);
	end->ex = ibv_qp_to_qp_ex(end->qp);
	CHECK(end->ex);
	if (options->unconnected)
		return;
	CHECK_EQUAL(end_state(end, IBV_QPS_INIT, 0), 0);
	CHECK_EQUAL(end_state(end, IBV_QPS_RTR, 0), 0);
	CHECK_EQUAL(end_state(end, IBV_QPS_RTS, options->rnr_retry), 0);
}

void end_open(struct end *end, const struct options *options)
{
	struct efadv_cq_init_attr efa = {.wc_flags = EFADV_WC_EX_WITH_SGID};
	struct ibv_cq_init_attr_ex attr = {.cqe = options->completions, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_ah_attr address = {.is_global = 1, .port_num = 1};
	struct ibv_device **list;
	int count;

	memset(end, 0, sizeof(*end));
	list = ibv_get_device_list(&count);
	CHECK(list && (int)options->device < count);
	end->context = ibv_open_device(list[options->device]);
	CHECK(end->context);
	ibv_free_device_list(list);
	end->pd = ibv_alloc_pd(end->context);
	if (options->with_channel)
		attr.channel = end->channel = ibv_create_comp_channel(end->context);
	end->cq = efadv_create_cq(end->context, &attr, &efa, sizeof(efa));
	CHECK(end->pd && end->cq);
	open_queue_pair(end, options);
	end->memory = mmap(NULL, RIG_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	CHECK(end->memory != MAP_FAILED);
	end->mr = ibv_reg_mr(end->pd, end->memory, RIG_MEMORY,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	CHECK(end->mr);
	CHECK_EQUAL(ibv_query_gid(end->context, 1, 0, &address.grh.dgid), 0);
	end->ah = ibv_create_ah(end->pd, &address);
	CHECK(end->ah);
}

void end_close(struct end *end)
{
	CHECK_EQUAL(ibv_destroy_qp(end->qp), 0);
	CHECK_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(end->cq)), 0);
	if (end->channel)
		CHECK_EQUAL(ibv_destroy_comp_channel(end->channel), 0);
	CHECK_EQUAL(ibv_destroy_ah(end->ah), 0);
	CHECK_EQUAL(ibv_dereg_mr(end->mr), 0);
	CHECK_EQUAL(ibv_dealloc_pd(end->pd), 0);
	CHECK_EQUAL(ibv_close_device(end->context), 0);
	munmap(end->memory, RIG_MEMORY);
}

int end_receive(struct end *end, uint64_t id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)(end->memory + offset), length, end->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(end->qp, &wr, &bad);
}

static void begin(struct end *end, uint64_t id)
{
	ibv_wr_start(end->ex);
	end->ex->wr_id = id;
	end->ex->wr_flags = IBV_SEND_SIGNALED;
}

static int finish(struct end *end, const struct end *to, size_t offset, uint32_t length)
{
	ibv_wr_set_sge(end->ex, end->mr->lkey, (uintptr_t)(end->memory + offset), length);
	ibv_wr_set_ud_addr(end->ex, end->ah, to->qp->qp_num, RIG_QKEY);
	return ibv_wr_complete(end->ex);
}

int end_send(struct end *end, const struct end *to, uint64_t id, size_t offset, uint32_t length)
{
	begin(end, id);
	ibv_wr_send(end->ex);
	return finish(end, to, offset, length);
}

int end_send_imm(struct end *end, const struct end *to, uint64_t id, uint32_t immediate)
{
	begin(end, id);
	ibv_wr_send_imm(end->ex, htonl(immediate));
	return finish(end, to, 0, 0);
}

int end_read(struct end *end, const struct end *from, uint64_t id, size_t offset, uint32_t length, size_t remote)
{
	begin(end, id);
	ibv_wr_rdma_read(end->ex, from->mr->rkey, (uintptr_t)(from->memory + remote));
	return finish(end, from, offset, length);
}

int end_write(struct end *end, const struct end *to, uint64_t id, size_t offset, uint32_t length, size_t remote)
{
	begin(end, id);
	ibv_wr_rdma_write(end->ex, to->mr->rkey, (uintptr_t)(to->memory + remote));
	return finish(end, to, offset, length);
}

int end_write_imm(struct end *end, const struct end *to, uint64_t id, size_t offset, uint32_t length,
		  size_t remote, uint32_t immediate)
{
	begin(end, id);
	ibv_wr_rdma_write_imm(end->ex, to->mr->rkey, (uintptr_t)(to->memory + remote), htonl(immediate));
	return finish(end, to, offset, length);
}

bool end_poll(struct end *end, struct done *done)
{
	struct ibv_poll_cq_attr attr = {0};
	int err = ibv_start_poll(end->cq, &attr);

	if (err == ENOENT)
		return false;
	CHECK_EQUAL(err, 0);
	*done = (struct done){
		.id = end->cq->wr_id,
		.status = end->cq->status,
		.vendor = ibv_wc_read_vendor_err(end->cq),
		.length = ibv_wc_read_byte_len(end->cq),
		.immediate = ntohl(ibv_wc_read_imm_data(end->cq)),
		.slid = ibv_wc_read_slid(end->cq),
		.source = ibv_wc_read_src_qp(end->cq),
		.opcode = ibv_wc_read_opcode(end->cq),
		.flags = ibv_wc_read_wc_flags(end->cq),
	};
	ibv_end_poll(end->cq);
	return true;
}

struct done end_await(struct end *end)
{
	time_t deadline = time(NULL) + 30;
	struct done done;

	while (!end_poll(end, &done))
		CHECK(time(NULL) < deadline);
	return done;
}

static uint8_t byte(size_t at, unsigned seed)
{
	uint32_t mixed = ((uint32_t)at + seed * 7919u) * 2654435761u;

	return (uint8_t)(mixed >> 24);
}

void fill(uint8_t *memory, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		memory[i] = byte(i, seed);
}

bool filled(const uint8_t *memory, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		if (memory[i] != byte(i, seed))
			return false;
	return true;
}
