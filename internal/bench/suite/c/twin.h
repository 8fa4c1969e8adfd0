// The C twins of weft's benchmarks: what a C program would do with the calls of
// libfabric that package fabric makes. One process is one endpoint; the runner
// in Go starts two of them, and talks to each by lines on stdin and stdout.
#ifndef WEFT_BENCH_TWIN_H
#define WEFT_BENCH_TWIN_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define WINDOW_LIMIT 1024
// The most entries that one read of the queue takes.
#define BATCH 64
#define DATA_TAG 1
#define END_TAG 2

// What the runner asks for; side.go of the Go side has the same.
struct order {
	const char *work; // pingpong, latency or flood
	const char *provider;
	const char *source; // empty: libfabric's choice
	int first; // pings, or floods; the other side answers
	int inject;
	int two; // a message is two: its length, and then its payload
	int each; // each message is timed, for the distribution
	uint64_t warmup, count, window, size;
};

// Like weft's slots: what libfabric keeps of an operation, and whose it is.
struct slot {
	struct fi_context2 context;
	uint64_t index;
};

struct port {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_mr *mr;
	void *desc;
	fi_addr_t peer;
	int block; // wait inside the provider instead of spinning
	unsigned char *memory;
	struct slot *slots;
};

// The memory of one message.
static inline unsigned char *buffer(struct port *port, const struct order *order, uint64_t slot)
{
	return port->memory + slot * order->size;
}

// A message begins with its number, and ends with it if it is long enough.
static inline void put_number(unsigned char *message, uint64_t size, uint64_t number)
{
	memcpy(message, &number, sizeof number);
	if (size >= 2 * sizeof number)
		memcpy(message + size - sizeof number, &number, sizeof number);
}

static inline int has_number(const unsigned char *message, uint64_t size, uint64_t number)
{
	return !memcmp(message, &number, sizeof number) &&
	       (size < 2 * sizeof number ||
		!memcmp(message + size - sizeof number, &number, sizeof number));
}

// A run is timed as a whole and in equal parts. The median of the parts is what
// the work takes while the kernel gives the cores to nobody else. A flood comes
// in bursts, which a part must be many times longer than.
#define PARTS 512
// How many parts there are at most where each message is one.
#define EACH_LIMIT (1 << 20)
// How many percentiles are told of a distribution.
#define PERCENTILES 15
#define PINGPONG_PART 1
static inline uint64_t flood_part(const struct order *order)
{
	uint64_t bytes = 65536 / order->size, windows = 16 * order->window;

	return bytes > windows ? bytes : windows;
}

struct stopwatch {
	uint64_t next; // the number of the message to call mark_time at
	uint64_t count, parts, step, marked;
	uint64_t *marks;
};

// What is reported; all zeros by the side that does not measure.
struct times {
	uint64_t elapsed, operations; // of all that counts, in ns
	uint64_t part, part_operations; // of the median part
	uint64_t percentiles[PERCENTILES]; // of the parts
};

// Every failure ends the process with the reason on stderr.
_Noreturn void die(const char *what, int code);
#define CHECK(call)                                  \
	do {                                         \
		int check_ret = (int)(call);         \
		if (check_ret)                       \
			die(#call, check_ret);       \
	} while (0)

// deadline.c: no loop goes on after it.
void set_deadline(unsigned seconds);
void check_deadline(void);

// port.c
void open_port(struct port *port, const struct order *order, size_t memory,
	       size_t slots);
void close_port(struct port *port);

// stopwatch.c
void plan_stopwatch(struct stopwatch *w, const struct order *order, uint64_t least);
void mark_time(struct stopwatch *w);
void stop_stopwatch(struct stopwatch *w, uint64_t per_message, struct times *times);

// talk.c
void meet_peer(struct port *port);
void wait_for_go(void);
void report(const struct order *order, const struct times *times);
void wait_for_end(void);

// queue.c: both read until there is something, or the deadline has passed.
// A turn of weft's is not more than one of them with posts before it.
int read_queue(struct port *port, struct fi_cq_tagged_entry *entries);
int poll_queue(struct port *port, struct fi_cq_tagged_entry *entries);

// What there is to do, between meeting the peer and the end: it returns what it
// took.
struct times pingpong(struct port *port, const struct order *order);
struct times pingpong_of_two(struct port *port, const struct order *order);
struct times flood(struct port *port, const struct order *order);

#endif
