/* SRD end to end, in one process, with the faults that the environment asks for:
 * whatever is reordered, refused and lost, everything arrives once. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "engine.h"
#include "faults.h"
#include "queue_pair.h"
#include "rig.h"
#include "settings.h"
#include "srd.h"
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

/* Messages in both directions at the same time, each in a slot of its own, with
 * its number as the seed of its bytes and in its first four. */
enum { MESSAGES = 3000, SLOTS = 256, SLOT = 9000, RECEIVED = 4 << 20 };

static uint32_t length_of(uint32_t number)
{
	return 4 + number * 37 % (8928 - 4);
}

struct side {
	struct end *end, *peer;
	uint32_t sent, acknowledged, received;
	bool busy[SLOTS];
	uint8_t seen[MESSAGES];
};

static void send_one(struct side *side)
{
	uint32_t slot = side->sent % SLOTS, number = side->sent;
	uint8_t *at = side->end->memory + slot * SLOT;

	if (side->sent == MESSAGES || side->busy[slot])
		return;
	fill(at, length_of(number), number);
	memcpy(at, &number, sizeof(number));
	CHECK_EQUAL(end_send(side->end, side->peer, slot, slot * SLOT, length_of(number)), 0);
	side->busy[slot] = true;
	side->sent++;
}

static void came(struct side *side, const struct done *done)
{
	size_t offset = RECEIVED + done->id * SLOT;
	uint8_t *at = side->end->memory + offset, first[4];
	uint32_t number;

	CHECK_EQUAL(done->status, IBV_WC_SUCCESS);
	CHECK_EQUAL(done->source, side->peer->qp->qp_num);
	memcpy(&number, at, sizeof(number));
	CHECK(number < MESSAGES);
	CHECK_EQUAL(done->length, length_of(number));
	CHECK(!side->seen[number]++);
	fill(first, sizeof(first), number);
	memcpy(at, first, sizeof(first));
	CHECK(filled(at, done->length, number));
	side->received++;
	CHECK_EQUAL(end_receive(side->end, done->id, offset, SLOT), 0);
}

static void turn(struct side *side)
{
	struct done done;

	send_one(side);
	if (!end_poll(side->end, &done))
		return;
	if (done.opcode == IBV_WC_RECV) {
		came(side, &done);
		return;
	}
	CHECK_EQUAL(done.status, IBV_WC_SUCCESS);
	side->busy[done.id] = false;
	side->acknowledged++;
}

static void test_messages_arrive_once(void)
{
	static struct side sides[2];
	time_t deadline = time(NULL) + 120;

	open_both(&ordinary);
	sides[0] = (struct side){.end = &a, .peer = &b};
	sides[1] = (struct side){.end = &b, .peer = &a};
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		CHECK_EQUAL(end_receive(&a, slot, RECEIVED + slot * SLOT, SLOT), 0);
		CHECK_EQUAL(end_receive(&b, slot, RECEIVED + slot * SLOT, SLOT), 0);
	}
	while (sides[0].received < MESSAGES || sides[1].received < MESSAGES ||
	       sides[0].acknowledged < MESSAGES || sides[1].acknowledged < MESSAGES) {
		turn(&sides[0]);
		turn(&sides[1]);
		CHECK(time(NULL) < deadline);
	}
	close_both();
}

/* Reads and writes of all sizes around the chunk's. */
static void test_reads_and_writes(void)
{
	static const uint32_t lengths[] = {0, 1, WIRE_CHUNK - 1, WIRE_CHUNK, WIRE_CHUNK + 1, 1 << 20, (4 << 20) - 5};
	struct done done;

	open_both(&ordinary);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t length = lengths[i];

		fill(a.memory, length, i);
		memset(b.memory, 0, RIG_MEMORY);
		CHECK_EQUAL(end_write(&a, &b, i, 0, length, 11), 0);
		done = end_await(&a);
		CHECK_EQUAL(done.status, IBV_WC_SUCCESS);
		CHECK_EQUAL(done.opcode, IBV_WC_RDMA_WRITE);
		CHECK(filled(b.memory + 11, length, i));
		CHECK(!b.memory[10] && !b.memory[11 + length]);

		memset(a.memory, 0, RIG_MEMORY);
		CHECK_EQUAL(end_read(&a, &b, i, 3, length, 11), 0);
		done = end_await(&a);
		CHECK_EQUAL(done.status, IBV_WC_SUCCESS);
		CHECK_EQUAL(done.opcode, IBV_WC_RDMA_READ);
		CHECK(filled(a.memory + 3, length, i));
		CHECK(!a.memory[2] && !a.memory[3 + length]);

		/* The immediate comes when all of the data is there. */
		fill(a.memory, length, i + 100);
		CHECK_EQUAL(end_receive(&b, 5, 0, 0), 0);
		CHECK_EQUAL(end_write_imm(&a, &b, i, 0, length, 0, 0xabcd0000 + i), 0);
		done = end_await(&b);
		CHECK(filled(b.memory, length, i + 100));
		CHECK_EQUAL(done.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		CHECK_EQUAL(done.length, length);
		CHECK_EQUAL(done.immediate, 0xabcd0000 + i);
		CHECK_EQUAL(done.flags, IBV_WC_WITH_IMM);
		CHECK_EQUAL(end_await(&a).status, IBV_WC_SUCCESS);
	}
	close_both();
}

static void test_many_at_once(void)
{
	enum { WORKS = 1000, LENGTH = 5000 };

	open_both(&ordinary);
	fill(b.memory, RIG_MEMORY, 1);
	for (unsigned i = 0; i < WORKS; i++)
		CHECK_EQUAL(end_read(&a, &b, i, (size_t)i * LENGTH, LENGTH, (size_t)i * LENGTH), 0);
	for (unsigned i = 0; i < WORKS; i++)
		CHECK_EQUAL(end_await(&a).status, IBV_WC_SUCCESS);
	CHECK(filled(a.memory, (size_t)WORKS * LENGTH, 1));
	close_both();
}

/* A receiver without posted receives. */
static void test_not_ready(void)
{
	struct options impatient = ordinary;
	struct done done;

	impatient.rnr_retry = 2;
	end_open(&a, &impatient);
	end_open(&b, &ordinary);
	CHECK_EQUAL(end_send(&a, &b, 1, 0, 8), 0);
	done = end_await(&a);
	CHECK_EQUAL(done.vendor, STATUS_REMOTE_NOT_READY);
	CHECK_EQUAL(done.status, IBV_WC_RNR_RETRY_EXC_ERR);
	/* What was given up does not arrive later. */
	CHECK_EQUAL(end_receive(&b, 2, 0, 8), 0);
	for (int i = 0; i < 1000; i++)
		CHECK(!end_poll(&b, &done));
	end_close(&a);

	/* Seven is for ever. */
	end_open(&a, &ordinary);
	CHECK_EQUAL(end_send(&a, &b, 1, 0, 8), 0);
	CHECK_EQUAL(end_await(&b).id, 2);
	CHECK_EQUAL(end_await(&a).status, IBV_WC_SUCCESS);
	CHECK_EQUAL(end_send(&a, &b, 1, 0, 8), 0);
	for (int i = 0; i < 1000; i++)
		CHECK(!end_poll(&a, &done));
	CHECK_EQUAL(end_receive(&b, 3, 0, 8), 0);
	CHECK_EQUAL(end_await(&b).id, 3);
	CHECK_EQUAL(end_await(&a).status, IBV_WC_SUCCESS);
	close_both();
}

/* The number of a queue pair that is not there any more. */
static void test_gone(void)
{
	struct ibv_qp qp;
	struct end gone = {0};
	struct done done;

	open_both(&ordinary);
	qp = *b.qp;
	gone.qp = &qp;
	end_close(&b);
	for (int i = 0; i < 3; i++) {
		CHECK_EQUAL(end_send(&a, &gone, 1, 0, 8), 0);
		done = end_await(&a);
		CHECK_EQUAL(done.vendor, STATUS_REMOTE_BAD_QPN);
		CHECK_EQUAL(done.status, IBV_WC_REM_INV_RD_REQ_ERR);
	}
	qp.qp_num = 1 << 20;
	CHECK_EQUAL(end_send(&a, &gone, 1, 0, 8), 0);
	CHECK_EQUAL(end_await(&a).vendor, STATUS_REMOTE_BAD_QPN);
	end_close(&a);
}

/* A peer that is cut off, and comes back. */
static void test_cut_off(void)
{
	struct in_addr address = settings()->addresses[0];
	struct done done;

	open_both(&ordinary);
	engine_lock();
	CHECK(faults_drop_peer(address, (uint16_t)b.qp->qp_num));
	engine_unlock();
	CHECK_EQUAL(end_receive(&b, 2, 0, 8), 0);
	CHECK_EQUAL(end_send(&a, &b, 1, 0, 8), 0);
	done = end_await(&a);
	CHECK_EQUAL(done.vendor, STATUS_UNRESPONSIVE);
	CHECK_EQUAL(done.status, IBV_WC_RESP_TIMEOUT_ERR);
	engine_lock();
	faults_heal();
	engine_unlock();
	CHECK_EQUAL(end_send(&a, &b, 3, 0, 8), 0);
	CHECK_EQUAL(end_await(&a).status, IBV_WC_SUCCESS);
	CHECK_EQUAL(end_await(&b).status, IBV_WC_SUCCESS);
	close_both();
}

static void test_hold_and_release(void)
{
	struct done done;

	open_both(&ordinary);
	engine_lock();
	faults_hold(UINT64_MAX);
	engine_unlock();
	for (unsigned i = 0; i < 10; i++) {
		CHECK_EQUAL(end_receive(&b, i, 64 * i, 64), 0);
		CHECK_EQUAL(end_send(&a, &b, i, 0, 64), 0);
	}
	for (int i = 0; i < 1000; i++)
		CHECK(!end_poll(&a, &done) && !end_poll(&b, &done));
	engine_lock();
	faults_hold(0);
	engine_each(srd_release);
	engine_unlock();
	for (unsigned i = 0; i < 10; i++) {
		CHECK_EQUAL(end_await(&a).status, IBV_WC_SUCCESS);
		CHECK_EQUAL(end_await(&b).status, IBV_WC_SUCCESS);
	}
	close_both();
}

static void test_error_state_flushes_sends(void)
{
	unsigned flushed = 0;

	open_both(&ordinary);
	for (unsigned i = 0; i < 500; i++)
		CHECK_EQUAL(end_send(&a, &b, i, 0, 8), 0);
	CHECK_EQUAL(end_write_imm(&a, &b, 500, 0, 4 << 20, 0, 1), 0);
	CHECK_EQUAL(end_state(&a, IBV_QPS_ERR, 0), 0);
	for (unsigned i = 0; i <= 500; i++)
		flushed += end_await(&a).vendor == STATUS_FLUSHED;
	CHECK_EQUAL(flushed, 501);
	close_both();
}

/* A queue pair that goes while its work is under way leaves nothing in the queue. */
static void test_destroy_forgets(void)
{
	struct options shared = ordinary;
	struct ibv_poll_cq_attr attr = {0};

	open_both(&shared);
	CHECK_EQUAL(end_receive(&a, 1, 0, 8), 0);
	CHECK_EQUAL(end_send(&a, &b, 2, 0, 8929), 0);
	CHECK_EQUAL(ibv_destroy_qp(a.qp), 0);
	CHECK_EQUAL(ibv_start_poll(a.cq, &attr), ENOENT);
	/* For end_close. */
	a.qp = NULL;
	end_close(&b);
	CHECK_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(a.cq)), 0);
	CHECK_EQUAL(ibv_destroy_ah(a.ah), 0);
	CHECK_EQUAL(ibv_dereg_mr(a.mr), 0);
	CHECK_EQUAL(ibv_dealloc_pd(a.pd), 0);
	CHECK_EQUAL(ibv_close_device(a.context), 0);
}

/* Who waits on a channel is woken, by the device's own thread. */
static void test_channel(void)
{
	struct options with = ordinary;
	struct ibv_cq *cq;
	struct done done;
	void *unused;

	with.with_channel = true;
	open_both(&with);
	for (unsigned i = 0; i < 20; i++) {
		struct pollfd wait = {.fd = b.channel->fd, .events = POLLIN};

		CHECK_EQUAL(ibv_req_notify_cq(ibv_cq_ex_to_cq(b.cq), 0), 0);
		CHECK(!end_poll(&b, &done));
		CHECK_EQUAL(poll(&wait, 1, 0), 0);
		CHECK_EQUAL(end_receive(&b, i, 0, 8), 0);
		CHECK_EQUAL(end_send_imm(&a, &b, i, 77), 0);
		CHECK_EQUAL(poll(&wait, 1, 30000), 1);
		CHECK_EQUAL(ibv_get_cq_event(b.channel, &cq, &unused), 0);
		CHECK(cq == ibv_cq_ex_to_cq(b.cq));
		ibv_ack_cq_events(cq, 1);
		CHECK(end_poll(&b, &done));
		CHECK_EQUAL(done.immediate, 77);
		CHECK_EQUAL(end_await(&a).status, IBV_WC_SUCCESS);
	}
	/* Not announced to anybody any more. */
	CHECK_EQUAL(ibv_req_notify_cq(ibv_cq_ex_to_cq(b.cq), 0), 0);
	CHECK_EQUAL(end_receive(&b, 1, 0, 8), 0);
	CHECK_EQUAL(end_send(&a, &b, 1, 0, 8), 0);
	CHECK_EQUAL(end_await(&a).status, IBV_WC_SUCCESS);
	close_both();
}

/* While nothing happens the device's thread blocks. */
static void test_idle_costs_nothing(void)
{
	struct options with = ordinary;
	struct timespec before, after;
	struct pollfd wait = {.events = POLLIN};
	long used;

	with.with_channel = true;
	open_both(&with);
	wait.fd = b.channel->fd;
	CHECK_EQUAL(ibv_req_notify_cq(ibv_cq_ex_to_cq(b.cq), 0), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	CHECK_EQUAL(poll(&wait, 1, 500), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	used = (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000;
	fprintf(stderr, "%ld us of processor time in 500 ms\n", used);
	/* One that spins uses all of it; a slow machine's wakeup not a fifth. */
	CHECK(used < 100000);
	close_both();
}

static void test_datagrams(void)
{
	struct options options = ordinary;
	struct done done;

	options.datagrams = true;
	open_both(&options);
	fill(a.memory, 100, 3);
	CHECK_EQUAL(end_receive(&b, 1, 0, 4096), 0);
	CHECK_EQUAL(end_send(&a, &b, 2, 0, 100), 0);
	CHECK_EQUAL(end_await(&a).status, IBV_WC_SUCCESS);
	done = end_await(&b);
	CHECK_EQUAL(done.length, 140);
	CHECK(filled(b.memory + 40, 100, 3));
	close_both();
}

int main(void)
{
	bool faulty;

	setenv("WEFT_EFA_TIMEOUT_MS", "1500", 0);
	faulty = settings()->drop > 0 || settings()->not_ready > 0;
	fprintf(stderr, "seed %llu\n", (unsigned long long)settings()->seed);
	RUN(test_messages_arrive_once);
	RUN(test_reads_and_writes);
	RUN(test_many_at_once);
	RUN(test_gone);
	RUN(test_cut_off);
	RUN(test_hold_and_release);
	RUN(test_error_state_flushes_sends);
	RUN(test_destroy_forgets);
	RUN(test_channel);
	RUN(test_idle_costs_nothing);
	/* These need to know which packet is refused or lost. */
	if (!faulty) {
		RUN(test_not_ready);
		RUN(test_datagrams);
	}
	return 0;
}
