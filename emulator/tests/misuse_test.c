/* Using the device wrongly: the error that hardware and its library in rdma-core
 * give, and nothing worse. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"
#include "counters.h"
#include "rig.h"
#include "status.h"

static struct end a, b;

static void open_both(const struct options *options)
{
	end_open(&a, options);
	end_open(&b, options);
}

static void close_both(void)
{
	end_close(&a);
	end_close(&b);
}

static void begin(struct end *end, unsigned flags)
{
	ibv_wr_start(end->ex);
	end->ex->wr_id = 1;
	end->ex->wr_flags = flags;
}

/* expect_failure is a completion of a's with this status of the device. */
static void expect_failure(struct end *end, uint32_t vendor, enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
	struct done done = end_await(end);

	CHECK_EQUAL(done.vendor, vendor);
	CHECK_EQUAL(done.status, status);
	CHECK_EQUAL(done.opcode, opcode);
}

static int send_with(uint32_t lkey, const void *memory, uint32_t length)
{
	begin(&a, IBV_SEND_SIGNALED);
	ibv_wr_send(a.ex);
	ibv_wr_set_sge(a.ex, lkey, (uintptr_t)memory, length);
	ibv_wr_set_ud_addr(a.ex, a.ah, b.qp->qp_num, RIG_QKEY);
	return ibv_wr_complete(a.ex);
}

static void test_local_keys(void)
{
	struct ibv_pd *pd;
	struct ibv_mr *other;

	open_both(&ordinary);
	pd = ibv_alloc_pd(a.context);
	other = ibv_reg_mr(pd, a.memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(pd && other);
	/* A key that never was; outside of the range, before and behind; one of
	 * another protection domain. */
	CHECK_EQUAL(send_with(a.mr->lkey + 1000, a.memory, 8), 0);
	expect_failure(&a, STATUS_INVALID_LKEY, IBV_WC_LOC_PROT_ERR, IBV_WC_SEND);
	CHECK_EQUAL(send_with(a.mr->lkey, a.memory - 1, 8), 0);
	expect_failure(&a, STATUS_INVALID_LKEY, IBV_WC_LOC_PROT_ERR, IBV_WC_SEND);
	CHECK_EQUAL(send_with(a.mr->lkey, a.memory + RIG_MEMORY - 7, 8), 0);
	expect_failure(&a, STATUS_INVALID_LKEY, IBV_WC_LOC_PROT_ERR, IBV_WC_SEND);
	CHECK_EQUAL(send_with(other->lkey, a.memory, 8), 0);
	expect_failure(&a, STATUS_INVALID_LKEY, IBV_WC_LOC_PROT_ERR, IBV_WC_SEND);
	/* One that was deregistered; and the protection domain that is in use. */
	CHECK_EQUAL(ibv_dealloc_pd(pd), EBUSY);
	CHECK_EQUAL(ibv_dereg_mr(other), 0);
	CHECK_EQUAL(ibv_dealloc_pd(pd), 0);
	other = ibv_reg_mr(a.pd, a.memory, 4096, 0);
	CHECK(other);
	/* What is read goes into memory that may be written. */
	begin(&a, IBV_SEND_SIGNALED);
	ibv_wr_rdma_read(a.ex, b.mr->rkey, (uintptr_t)b.memory);
	ibv_wr_set_sge(a.ex, other->lkey, (uintptr_t)a.memory, 8);
	ibv_wr_set_ud_addr(a.ex, a.ah, b.qp->qp_num, RIG_QKEY);
	CHECK_EQUAL(ibv_wr_complete(a.ex), 0);
	expect_failure(&a, STATUS_INVALID_LKEY, IBV_WC_LOC_PROT_ERR, IBV_WC_RDMA_READ);
	CHECK_EQUAL(ibv_dereg_mr(other), 0);
	close_both();
}

static void test_lengths(void)
{
	struct done done;

	open_both(&ordinary);
	CHECK_EQUAL(end_send(&a, &b, 1, 0, 8929), 0);
	expect_failure(&a, STATUS_BAD_LENGTH, IBV_WC_LOC_LEN_ERR, IBV_WC_SEND);
	/* A receive that is too short. */
	CHECK_EQUAL(end_receive(&b, 2, 0, 99), 0);
	CHECK_EQUAL(end_send(&a, &b, 1, 0, 100), 0);
	expect_failure(&a, STATUS_REMOTE_BAD_LENGTH, IBV_WC_REM_INV_REQ_ERR, IBV_WC_SEND);
	done = end_await(&b);
	CHECK_EQUAL(done.vendor, STATUS_BAD_LENGTH);
	CHECK_EQUAL(done.opcode, IBV_WC_RECV);
	/* The longest that there is. */
	CHECK_EQUAL(end_receive(&b, 2, 0, 8928), 0);
	CHECK_EQUAL(end_send(&a, &b, 1, 0, 8928), 0);
	CHECK_EQUAL(end_await(&a).vendor, STATUS_OK);
	CHECK_EQUAL(end_await(&b).length, 8928);
	close_both();
}

static int remote(bool write, uint32_t rkey, uint64_t address, uint32_t length)
{
	begin(&a, IBV_SEND_SIGNALED);
	if (write)
		ibv_wr_rdma_write(a.ex, rkey, address);
	else
		ibv_wr_rdma_read(a.ex, rkey, address);
	ibv_wr_set_sge(a.ex, a.mr->lkey, (uintptr_t)a.memory, length);
	ibv_wr_set_ud_addr(a.ex, a.ah, b.qp->qp_num, RIG_QKEY);
	return ibv_wr_complete(a.ex);
}

static void test_remote_keys(void)
{
	struct ibv_mr *readable, *writable;

	open_both(&ordinary);
	readable = ibv_reg_mr(b.pd, b.memory, 4096, IBV_ACCESS_REMOTE_READ);
	writable = ibv_reg_mr(b.pd, b.memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(readable && writable);
	for (int write = 0; write < 2; write++) {
		struct ibv_mr *allowed = write ? writable : readable, *denied = write ? readable : writable;
		enum ibv_wc_opcode opcode = write ? IBV_WC_RDMA_WRITE : IBV_WC_RDMA_READ;
		uint64_t at = (uintptr_t)b.memory;

		CHECK_EQUAL(remote(write, allowed->rkey, at, 4096), 0);
		CHECK_EQUAL(end_await(&a).vendor, STATUS_OK);
		CHECK_EQUAL(remote(write, denied->rkey, at, 8), 0);
		expect_failure(&a, STATUS_REMOTE_BAD_ADDRESS, IBV_WC_GENERAL_ERR, opcode);
		CHECK_EQUAL(remote(write, allowed->rkey, at + 1, 4096), 0);
		expect_failure(&a, STATUS_REMOTE_BAD_ADDRESS, IBV_WC_GENERAL_ERR, opcode);
		CHECK_EQUAL(remote(write, allowed->rkey, UINT64_MAX - 3, 8), 0);
		expect_failure(&a, STATUS_REMOTE_BAD_ADDRESS, IBV_WC_GENERAL_ERR, opcode);
		CHECK_EQUAL(remote(write, allowed->rkey + 77, at, 8), 0);
		expect_failure(&a, STATUS_REMOTE_BAD_ADDRESS, IBV_WC_GENERAL_ERR, opcode);
	}
	CHECK_EQUAL(ibv_dereg_mr(readable), 0);
	CHECK_EQUAL(ibv_dereg_mr(writable), 0);
	CHECK_EQUAL(remote(false, readable ? b.mr->rkey ^ 0x10000 : 0, (uintptr_t)b.memory, 8), 0);
	expect_failure(&a, STATUS_REMOTE_BAD_ADDRESS, IBV_WC_GENERAL_ERR, IBV_WC_RDMA_READ);
	close_both();
}

/* Memory that went away under its registration is an error, not a crash. */
static void test_stale_registration(void)
{
	struct ibv_mr *mr;
	void *gone = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	open_both(&ordinary);
	mr = ibv_reg_mr(b.pd, gone, 65536, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr);
	CHECK(!munmap(gone, 65536));
	CHECK_EQUAL(remote(false, mr->rkey, (uintptr_t)gone, 100), 0);
	expect_failure(&a, STATUS_REMOTE_BAD_ADDRESS, IBV_WC_GENERAL_ERR, IBV_WC_RDMA_READ);
	CHECK_EQUAL(remote(true, mr->rkey, (uintptr_t)gone, 100), 0);
	expect_failure(&a, STATUS_REMOTE_BAD_ADDRESS, IBV_WC_GENERAL_ERR, IBV_WC_RDMA_WRITE);
	CHECK_EQUAL(ibv_dereg_mr(mr), 0);
	/* And what is not there cannot be registered. */
	CHECK(!ibv_reg_mr(b.pd, gone, 65536, 0));
	CHECK_EQUAL(errno, EFAULT);
	close_both();
}

static void test_registering(void)
{
	open_both(&ordinary);
	CHECK(!ibv_reg_mr(a.pd, a.memory, 4096, IBV_ACCESS_REMOTE_WRITE));
	CHECK_EQUAL(errno, EINVAL);
	CHECK(!ibv_reg_mr(a.pd, a.memory, 0, 0));
	CHECK_EQUAL(errno, EINVAL);
	CHECK(!ibv_reg_mr(a.pd, a.memory, 4096, IBV_ACCESS_REMOTE_ATOMIC));
	CHECK_EQUAL(errno, EOPNOTSUPP);
	close_both();
}

static void test_states(void)
{
	struct options options = ordinary;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct done done;

	options.unconnected = true;
	open_both(&options);
	/* In RESET nothing can be posted. */
	CHECK_EQUAL(end_send(&a, &b, 1, 0, 8), EINVAL);
	CHECK_EQUAL(end_receive(&a, 1, 0, 8), EINVAL);
	/* States cannot be left out, nor their attributes. */
	CHECK_EQUAL(end_state(&a, IBV_QPS_RTR, 0), EINVAL);
	CHECK_EQUAL(end_state(&a, IBV_QPS_RTS, 0), EINVAL);
	CHECK_EQUAL(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), EINVAL);
	CHECK_EQUAL(end_state(&a, IBV_QPS_INIT, 0), 0);
	CHECK_EQUAL(end_receive(&a, 1, 0, 8), 0);
	CHECK_EQUAL(end_send(&a, &b, 2, 0, 8), EINVAL);
	CHECK_EQUAL(end_state(&a, IBV_QPS_RTR, 0), 0);
	CHECK_EQUAL(end_send(&a, &b, 2, 0, 8), EINVAL);
	CHECK_EQUAL(end_state(&a, IBV_QPS_RTS, 8), EINVAL);
	CHECK_EQUAL(end_state(&a, IBV_QPS_RTS, 7), 0);
	/* To one that is in RESET. */
	CHECK_EQUAL(end_send(&a, &b, 2, 0, 8), 0);
	expect_failure(&a, STATUS_REMOTE_BAD_QPN, IBV_WC_REM_INV_RD_REQ_ERR, IBV_WC_SEND);
	/* Going to ERR flushes. */
	CHECK_EQUAL(end_state(&a, IBV_QPS_ERR, 0), 0);
	done = end_await(&a);
	CHECK_EQUAL(done.id, 1);
	CHECK_EQUAL(done.status, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQUAL(done.vendor, STATUS_FLUSHED);
	CHECK_EQUAL(end_receive(&a, 1, 0, 8), EINVAL);
	CHECK_EQUAL(end_state(&a, IBV_QPS_RESET, 0), 0);
	CHECK_EQUAL(end_state(&a, IBV_QPS_INIT, 0), 0);
	close_both();
}

static void test_queues_that_are_full(void)
{
	struct options options = ordinary;
	struct ibv_poll_cq_attr attr = {0};
	time_t deadline = time(NULL) + 30;
	struct done done;

	options.sends = options.receives = 4;
	open_both(&options);
	for (int i = 0; i < 4; i++) {
		CHECK_EQUAL(end_receive(&a, 1, 0, 8), 0);
		CHECK_EQUAL(end_send(&a, &b, 2, 0, 8), 0);
	}
	CHECK_EQUAL(end_receive(&a, 1, 0, 8), ENOMEM);
	CHECK_EQUAL(end_send(&a, &b, 2, 0, 8), ENOMEM);
	/* A place is free when the completion was read. */
	for (int i = 0; i < 4; i++)
		CHECK_EQUAL(end_receive(&b, 3, 0, 8), 0);
	CHECK_EQUAL(end_await(&a).vendor, STATUS_OK);
	CHECK_EQUAL(end_send(&a, &b, 2, 0, 8), 0);
	CHECK_EQUAL(end_send(&a, &b, 2, 0, 8), ENOMEM);
	close_both();

	/* A completion queue that is not read. */
	options = ordinary;
	options.completions = 2;
	end_open(&b, &ordinary);
	end_open(&a, &options);
	for (int i = 0; i < 3; i++) {
		CHECK_EQUAL(end_receive(&b, 3, 0, 8), 0);
		CHECK_EQUAL(end_send(&a, &b, 2, 0, 8), 0);
	}
	for (int i = 0; i < 3; i++)
		end_await(&b);
	/* Polling the other end makes progress, and reads nothing of this one's. */
	while (!counters_read(COUNTER_OVERRUNS)) {
		CHECK(time(NULL) < deadline);
		CHECK(!end_poll(&b, &done));
	}
	CHECK_EQUAL(end_await(&a).vendor, STATUS_OK);
	CHECK_EQUAL(end_await(&a).vendor, STATUS_OK);
	CHECK_EQUAL(ibv_start_poll(a.cq, &attr), EINVAL);
	close_both();
}

static void test_posting(void)
{
	uint8_t bytes[33] = {0};
	struct ibv_sge list[3];

	open_both(&ordinary);
	for (int i = 0; i < 3; i++)
		list[i] = (struct ibv_sge){(uintptr_t)a.memory, 8, a.mr->lkey};
	/* Unsignaled, or with flags that there are not. */
	begin(&a, 0);
	ibv_wr_send(a.ex);
	CHECK_EQUAL(ibv_wr_complete(a.ex), EINVAL);
	begin(&a, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	ibv_wr_send(a.ex);
	CHECK_EQUAL(ibv_wr_complete(a.ex), EINVAL);
	/* Too much inline, too many parts. */
	begin(&a, IBV_SEND_SIGNALED);
	ibv_wr_send(a.ex);
	ibv_wr_set_inline_data(a.ex, bytes, sizeof(bytes));
	CHECK_EQUAL(ibv_wr_complete(a.ex), EINVAL);
	begin(&a, IBV_SEND_SIGNALED);
	ibv_wr_send(a.ex);
	ibv_wr_set_sge_list(a.ex, 3, list);
	CHECK_EQUAL(ibv_wr_complete(a.ex), EINVAL);
	begin(&a, IBV_SEND_SIGNALED);
	ibv_wr_rdma_read(a.ex, b.mr->rkey, (uintptr_t)b.memory);
	ibv_wr_set_sge_list(a.ex, 2, list);
	CHECK_EQUAL(ibv_wr_complete(a.ex), EINVAL);
	/* What was aborted leaves nothing. */
	begin(&a, IBV_SEND_SIGNALED);
	ibv_wr_send(a.ex);
	ibv_wr_abort(a.ex);
	/* No address handle, or one of another protection domain. */
	begin(&a, IBV_SEND_SIGNALED);
	ibv_wr_send(a.ex);
	ibv_wr_set_sge(a.ex, a.mr->lkey, (uintptr_t)a.memory, 8);
	ibv_wr_set_ud_addr(a.ex, b.ah, b.qp->qp_num, RIG_QKEY);
	CHECK_EQUAL(ibv_wr_complete(a.ex), 0);
	expect_failure(&a, STATUS_INVALID_AH, IBV_WC_LOC_QP_OP_ERR, IBV_WC_SEND);
	/* The wrong QKEY. */
	begin(&a, IBV_SEND_SIGNALED);
	ibv_wr_send(a.ex);
	ibv_wr_set_sge(a.ex, a.mr->lkey, (uintptr_t)a.memory, 8);
	ibv_wr_set_ud_addr(a.ex, a.ah, b.qp->qp_num, RIG_QKEY + 1);
	CHECK_EQUAL(ibv_wr_complete(a.ex), 0);
	expect_failure(&a, STATUS_REMOTE_BAD_QPN, IBV_WC_REM_INV_RD_REQ_ERR, IBV_WC_SEND);
	/* None of all these took a place. */
	for (int i = 0; i < 1024; i++)
		CHECK_EQUAL(end_send(&a, &b, 1, 0, 8), 0);
	CHECK_EQUAL(end_send(&a, &b, 1, 0, 8), ENOMEM);
	close_both();
}

/* Reading and writing needs an address handle of the initiator at the target. */
static void test_unknown_peer(void)
{
	struct options second = ordinary;
	struct ibv_ah_attr address = {.is_global = 1, .port_num = 1};
	struct ibv_ah *to_b;

	second.device = 1;
	end_open(&a, &ordinary);
	end_open(&b, &second);
	CHECK_EQUAL(ibv_query_gid(b.context, 1, 0, &address.grh.dgid), 0);
	to_b = ibv_create_ah(a.pd, &address);
	CHECK(to_b);
	begin(&a, IBV_SEND_SIGNALED);
	ibv_wr_rdma_read(a.ex, b.mr->rkey, (uintptr_t)b.memory);
	ibv_wr_set_sge(a.ex, a.mr->lkey, (uintptr_t)a.memory, 8);
	ibv_wr_set_ud_addr(a.ex, to_b, b.qp->qp_num, RIG_QKEY);
	CHECK_EQUAL(ibv_wr_complete(a.ex), 0);
	expect_failure(&a, STATUS_REMOTE_UNKNOWN_PEER, IBV_WC_GENERAL_ERR, IBV_WC_RDMA_READ);
	CHECK_EQUAL(ibv_destroy_ah(to_b), 0);
	close_both();
}

static void test_creating(void)
{
	struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD};
	struct ibv_cq_init_attr_ex cq = {.cqe = 0};
	struct ibv_ah_attr address = {.is_global = 1, .port_num = 1, .grh.dgid.raw = {0xfe, 0x80}};
	struct ibv_qp_init_attr_ex attr;

	end_open(&a, &ordinary);
	attr = (struct ibv_qp_init_attr_ex){
		.send_cq = ibv_cq_ex_to_cq(a.cq),
		.recv_cq = ibv_cq_ex_to_cq(a.cq),
		.cap = {1025, 1, 1, 1, 0},
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = a.pd,
	};
	CHECK(!efadv_create_qp_ex(a.context, &attr, &efa, sizeof(efa)) && errno == EINVAL);
	attr.cap = (struct ibv_qp_cap){1, 1, 3, 1, 0};
	CHECK(!efadv_create_qp_ex(a.context, &attr, &efa, sizeof(efa)) && errno == EINVAL);
	attr.cap = (struct ibv_qp_cap){1, 1, 1, 1, 0};
	attr.qp_type = IBV_QPT_RC;
	CHECK(!efadv_create_qp_ex(a.context, &attr, &efa, sizeof(efa)) && errno == EINVAL);
	CHECK(!ibv_create_qp_ex(a.context, &attr) && errno == EOPNOTSUPP);
	attr.qp_type = IBV_QPT_DRIVER;
	attr.recv_cq = NULL;
	CHECK(!efadv_create_qp_ex(a.context, &attr, &efa, sizeof(efa)) && errno == EINVAL);
	CHECK(!ibv_create_cq_ex(a.context, &cq) && errno == EINVAL);
	CHECK(!ibv_create_ah(a.pd, &address) && errno == EINVAL);
	/* What is in use stays. */
	CHECK_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(a.cq)), EBUSY);
	CHECK_EQUAL(ibv_dealloc_pd(a.pd), EBUSY);
	end_close(&a);
}

int main(void)
{
	setenv("WEFT_EFA_DEVICES", "2", 1);
	RUN(test_local_keys);
	RUN(test_lengths);
	RUN(test_remote_keys);
	RUN(test_stale_registration);
	RUN(test_registering);
	RUN(test_states);
	RUN(test_queues_that_are_full);
	RUN(test_posting);
	RUN(test_unknown_peer);
	RUN(test_creating);
	return 0;
}
