/* Devices, opened devices and protection domains. */
#ifndef DEVICE_H
#define DEVICE_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	/* The limits of the device, as a recent EFA generation states them. */
	DEVICE_SEND_WORK = 1024,
	DEVICE_RECEIVE_WORK = 2048,
	DEVICE_SEND_SGE = 2,
	DEVICE_RECEIVE_SGE = 1,
	DEVICE_INLINE = 32,
	DEVICE_COMPLETIONS = 32768,
	DEVICE_RDMA = 1 << 30,
};

struct handles;

struct device {
	struct ibv_device verbs;
	/* libibverbs keeps more behind an ibv_device; nothing may reach ours. */
	char beyond[1024];
	unsigned index;
	struct in_addr address;
	struct handles *handles; /* the numbers of its address handles */
};

struct context {
	struct device *device;
	/* Takes in what a program calls by the C library's libefa: rdma reads have
	 * another opcode there for libfabric before 1.18. */
	bool reads_are_sends;
	struct verbs_context verbs; /* ends with the ibv_context */
};

struct domain {
	struct ibv_pd verbs;
	unsigned users; /* what was made in it */
};

struct context *context_of(struct ibv_context *context);
struct device *device_of(struct ibv_context *context);

/* A GID is the IPv4 address, mapped into IPv6. */
union ibv_gid gid_of(struct in_addr address);
bool gid_address(const union ibv_gid *gid, struct in_addr *address);

#endif
