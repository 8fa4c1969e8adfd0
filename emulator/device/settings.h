/* The environment variables WEFT_EFA_*, read once. README.md has the table. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum { SETTINGS_DEVICES = 16 };

struct settings {
	bool valid; /* false: one of them is wrong, and was complained about */
	unsigned devices;
	struct in_addr addresses[SETTINGS_DEVICES];
	unsigned first_qpn; /* 0: the kernel chooses */
	unsigned handles;   /* address handles of a device, at most */
	bool rdma_read, rdma_write;
	uint64_t timeout; /* nanoseconds without an answer until a peer is given up */
	/* Faults. */
	uint64_t seed;
	double reorder, drop, not_ready; /* shares, 0 to 1 */
	uint64_t reorder_delay, latency; /* nanoseconds */
	/* Where to say and be told things; NULL: nowhere. */
	const char *counters, *control;
};

const struct settings *settings(void);

#endif
