#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe.h"

// The sides of a pair, opened and moved on as every question needs it.
struct side a, b;
fi_addr_t to_a, to_b;
struct fi_context2 contexts[CONTEXTS];
struct fi_cq_tagged_entry entry;
struct fi_cq_err_entry error;

int is_shm(void) { return !strcmp(provider, "shm"); }

struct fi_info *look(uint64_t caps, const char *node, int *ret)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(provider);
	*ret = fi_getinfo(fi_version(), node, NULL, node ? FI_SOURCE : 0, hints, &info);
	fi_freeinfo(hints);
	return info;
}

static void open_domain(struct side *s, uint64_t caps)
{
	int ret;

	if (shared->count < PIDS)
		shared->pids[shared->count++] = getpid();
	s->info = look(caps, is_shm() ? NULL : "127.0.0.1", &ret);
	must("fi_getinfo", ret);
	must("fi_fabric", fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	must("fi_domain", fi_domain(s->fabric, s->info, &s->domain, NULL));
}

void open_rest(struct side *s)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE, .size = 4096};

	must("fi_av_open", fi_av_open(s->domain, &av, &s->av, NULL));
	must("fi_cq_open", fi_cq_open(s->domain, &cq, &s->cq, NULL));
	must("fi_endpoint", fi_endpoint(s->domain, s->info, &s->ep, NULL));
	must("fi_ep_bind", fi_ep_bind(s->ep, &s->av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(s->ep));
	s->name_size = sizeof s->name;
	must("fi_getname", fi_getname(&s->ep->fid, s->name, &s->name_size));
}

void open_side_for(struct side *s, uint64_t caps)
{
	memset(s, 0, sizeof *s);
	open_domain(s, caps);
	open_rest(s);
}

void open_side(struct side *s) { open_side_for(s, FI_TAGGED); }

fi_addr_t insert(struct side *s, const struct side *peer)
{
	fi_addr_t address = FI_ADDR_NOTAVAIL;
	int ret = fi_av_insert(s->av, peer->name, 1, &address, 0, NULL);

	must("fi_av_insert", ret == 1 ? 0 : -FI_EINVAL);
	return address;
}

// Reads s's queue, and moves other on, until there is something or the time is
// over. 1: a completion; 0: nothing; -1: an error, in *error.
int reap(struct side *s, struct side *other, double limit,
		struct fi_cq_tagged_entry *entry, struct fi_cq_err_entry *error)
{
	double end = seconds() + limit;
	struct fi_cq_tagged_entry unused;
	ssize_t ret;

	do {
		ret = fi_cq_read(s->cq, entry, 1);
		if (ret == 1)
			return 1;
		if (ret == -FI_EAVAIL) {
			memset(error, 0, sizeof *error);
			fi_cq_readerr(s->cq, error, 0);
			return -1;
		}
		if (other && fi_cq_read(other->cq, &unused, 1) == -FI_EAVAIL)
			fi_cq_readerr(other->cq, error, 0);
		// A provider with a thread of its own needs the core.
		poll(NULL, 0, 1);
	} while (seconds() < end);
	return 0;
}

// Posts until it is taken, moving both sides on. Returns the last answer.
ssize_t send_to(struct side *s, struct side *other, const void *buf, size_t size,
		       fi_addr_t to, uint64_t tag, void *context, double limit)
{
	double end = seconds() + limit;
	struct fi_cq_tagged_entry unused;
	struct fi_cq_err_entry error;
	ssize_t ret;

	for (;;) {
		ret = fi_tsend(s->ep, buf, size, NULL, to, tag, context);
		if (ret != -FI_EAGAIN || seconds() > end)
			return ret;
		if (fi_cq_read(s->cq, &unused, 1) == -FI_EAVAIL)
			fi_cq_readerr(s->cq, &error, 0);
		if (other && fi_cq_read(other->cq, &unused, 1) == -FI_EAVAIL)
			fi_cq_readerr(other->cq, &error, 0);
		sched_yield();
	}
}

void pair(void)
{
	open_side(&a);
	open_side(&b);
	to_a = insert(&b, &a);
	to_b = insert(&a, &b);
}

// A child that has opened a side and waits; its name comes through the pipe.
pid_t child_with_side(struct side *s)
{
	int pipes[2];
	pid_t pid;

	if (pipe(pipes) || (pid = fork()) < 0)
		_exit(1);
	if (pid == 0) {
		open_side(s);
		if (write(pipes[1], s, sizeof *s) == sizeof *s)
			return 0;
		_exit(1);
	}
	close(pipes[1]);
	if (read(pipes[0], s, sizeof *s) != sizeof *s)
		_exit(1);
	return pid;
}
