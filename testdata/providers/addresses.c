#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probe.h"

// Where two processes ask to be bound to the same host, without a port.
static void open_at_node(struct side *s, const char *at)
{
	int ret;

	memset(s, 0, sizeof *s);
	s->info = look(FI_TAGGED, at, &ret);
	must("fi_getinfo", ret);
	must("fi_fabric", fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	must("fi_domain", fi_domain(s->fabric, s->info, &s->domain, NULL));
	open_rest(s);
}

static void node(void)
{
	// The name is this program's alone where it is free text.
	const char *at = is_shm() ? PROBE_NODE : "127.0.0.1";
	int pipes[2];

	if (pipe(pipes))
		return;
	if (fork() == 0) {
		open_at_node(&b, at);
		if (write(pipes[1], &b, sizeof b) == sizeof b)
			pause();
		_exit(0);
	}
	close(pipes[1]);
	if (read(pipes[0], &b, sizeof b) != sizeof b)
		return;
	open_at_node(&a, at);
	say(a.name_size == b.name_size && !memcmp(a.name, b.name, a.name_size)
		    ? "two processes have the SAME address"
		    : "each has an address of its own");
}

static void foreign_source(void)
{
	int ret;

	look(FI_TAGGED, FOREIGN_NODE, &ret);
	say("fi_getinfo %s, then ", code(ret));
	if (ret)
		return;
	open_at_node(&a, FOREIGN_NODE);
	say("an endpoint that can be enabled");
}

static void duplicate(void)
{
	pair();
	say(insert(&a, &b) == to_b ? "the same fi_addr" : "another fi_addr");
}

static void many_peers(void)
{
	fi_addr_t address;
	int n, ret;

	open_side(&a);
	for (n = 0; n < 2000; n++) {
		char name[512];

		memcpy(name, a.name, sizeof name);
		if (is_shm())
			snprintf(name, sizeof name, "fi_shm://%d:%d:0", 100000 + n, n);
		else
			name[2] = (char)(n >> 8 | 1), name[3] = (char)n; // the port
		ret = fi_av_insert(a.av, name, 1, &address, 0, NULL);
		if (ret != 1)
			break;
	}
	say(n < 2000 ? "%d, then fi_av_insert %s" : "%d and more", n, code(ret));
}

const struct question address_questions[] = {
	{"node", node},
	{"foreign-source", foreign_source},
	{"duplicate", duplicate},
	{"many-peers", many_peers},
	{NULL, NULL},
};
