#include "settings.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct settings all;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void wrong(const char *name, const char *value, const char *want)
{
	fprintf(stderr, "weft-efa: %s=%s: want %s; there will be no EFA device\n", name, value, want);
	all.valid = false;
}

/* number reads a whole number, or leaves the default. */
static uint64_t number(const char *name, uint64_t otherwise, uint64_t least, uint64_t most)
{
	const char *value = getenv(name);
	char *end, want[96];
	unsigned long long n;

	if (!value || !*value)
		return otherwise;
	n = strtoull(value, &end, 0);
	if (*value == '-' || *end || n < least || n > most) {
		snprintf(want, sizeof(want), "a whole number from %llu to %llu",
			 (unsigned long long)least, (unsigned long long)most);
		wrong(name, value, want);
		return otherwise;
	}
	return n;
}

static double percent(const char *name)
{
	const char *value = getenv(name);
	char *end;
	double share;

	if (!value || !*value)
		return 0;
	share = strtod(value, &end);
	if (*end || !(share >= 0 && share <= 100)) {
		wrong(name, value, "per cent, from 0 to 100, such as 2.5");
		return 0;
	}
	return share / 100;
}

/* of_interface is the first IPv4 address of an interface. */
static bool of_interface(const char *name, struct in_addr *address)
{
	struct ifaddrs *list, *entry;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (entry = list; entry && !found; entry = entry->ifa_next) {
		if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET || strcmp(entry->ifa_name, name))
			continue;
		memcpy(address, &((struct sockaddr_in *)(void *)entry->ifa_addr)->sin_addr, sizeof(*address));
		found = true;
	}
	freeifaddrs(list);
	return found;
}

static void addresses(void)
{
	static const char name[] = "WEFT_EFA_ADDRESSES";
	const char *value = getenv(name);
	char *copy, *entry, *rest;

	if (!value || !*value)
		value = "127.0.0.1";
	copy = strdup(value);
	if (!copy)
		abort();
	for (entry = strtok_r(copy, ", ", &rest); entry; entry = strtok_r(NULL, ", ", &rest)) {
		if (all.devices == SETTINGS_DEVICES ||
		    (inet_pton(AF_INET, entry, &all.addresses[all.devices]) != 1 &&
		     !of_interface(entry, &all.addresses[all.devices])) ||
		    all.addresses[all.devices].s_addr == INADDR_ANY) {
			wrong(name, value, "at most 16 IPv4 addresses of this machine, or names of its interfaces, with commas between");
			break;
		}
		all.devices++;
	}
	free(copy);
}

/* devices takes the addresses after the last one for devices without. */
static void devices(void)
{
	unsigned count = (unsigned)number("WEFT_EFA_DEVICES", all.devices, 1, SETTINGS_DEVICES);

	while (all.devices && all.devices < count) {
		uint32_t last = ntohl(all.addresses[all.devices - 1].s_addr);

		all.addresses[all.devices++].s_addr = htonl(last + 1);
	}
	all.devices = count;
}

static void rdma(void)
{
	const char *value = getenv("WEFT_EFA_RDMA");

	if (!value || !*value || !strcmp(value, "write")) {
		all.rdma_read = all.rdma_write = true;
	} else if (!strcmp(value, "read")) {
		all.rdma_read = true;
	} else if (strcmp(value, "none")) {
		wrong("WEFT_EFA_RDMA", value, "write (reads and writes), read (only those) or none");
	}
}

static void read_all(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	all.valid = true;
	addresses();
	devices();
	rdma();
	all.first_qpn = (unsigned)number("WEFT_EFA_FIRST_QPN", 0, 1, 65535);
	all.handles = (unsigned)number("WEFT_EFA_HANDLES", 4096, 1, 65534);
	all.timeout = number("WEFT_EFA_TIMEOUT_MS", 10000, 1, 3600000) * 1000000;
	all.seed = number("WEFT_EFA_SEED", (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 32, 0, UINT64_MAX);
	all.reorder = percent("WEFT_EFA_REORDER");
	all.reorder_delay = number("WEFT_EFA_REORDER_US", 200, 1, 1000000) * 1000;
	all.drop = percent("WEFT_EFA_DROP");
	all.not_ready = percent("WEFT_EFA_RNR");
	all.latency = number("WEFT_EFA_LATENCY_US", 0, 0, 1000000) * 1000;
	all.counters = getenv("WEFT_EFA_COUNTERS");
	if (all.counters && (!*all.counters || !strcmp(all.counters, "0")))
		all.counters = NULL;
	all.control = getenv("WEFT_EFA_CONTROL");
	if (all.control && !*all.control)
		all.control = NULL;
}

const struct settings *settings(void)
{
	pthread_once(&once, read_all);
	return &all;
}
