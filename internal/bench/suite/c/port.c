#include "twin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// The same wishes as messageHints and Discover of package fabric.
static struct fi_info *hints_for(const struct order *order)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		die("fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_MSG | FI_TAGGED | FI_SOURCE;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(order->provider);
	return hints;
}

// The same choice as fitting of package fabric, which prefers what has utility
// layers over tcp.
static int layered(const struct fi_info *info)
{
	return !strncmp(info->fabric_attr->prov_name, "tcp;", 4);
}

static int fits(const struct fi_info *info, const char *provider)
{
	const char *name = info->fabric_attr->prov_name;
	size_t core = strcspn(name, ";");

	return core == strcspn(provider, ";") && !strncmp(name, provider, core) &&
	       (info->tx_attr->msg_order & info->rx_attr->msg_order & FI_ORDER_SAS) &&
	       (info->ep_attr->mem_tag_format >> 63);
}

static struct fi_info *find_info(const struct order *order)
{
	struct fi_info *hints = hints_for(order), *list, *next, *found = NULL;
	int with_source = order->source[0] != 0;
	uint32_t library = fi_version();
	uint32_t headers = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

	CHECK(fi_getinfo(FI_VERSION_LT(library, headers) ? library : headers,
			 with_source ? order->source : NULL, NULL,
			 with_source ? FI_SOURCE : 0, hints, &list));
	for (next = list; next; next = next->next)
		if (fits(next, order->provider) &&
		    (!found || (!layered(found) && layered(next))))
			found = next;
	if (!found)
		die("no fitting info of the provider", 0);
	found = fi_dupinfo(found);
	if (!found)
		die("fi_dupinfo", -FI_ENOMEM);
	fi_freeinfo(list);
	fi_freeinfo(hints);
	return found;
}

// With a wait descriptor where the provider can make one, as weft has it.
static void open_queue(struct port *port)
{
	struct fi_cq_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.size = 1024;
	attr.format = FI_CQ_FORMAT_TAGGED;
	attr.wait_obj = FI_WAIT_FD;
	attr.wait_cond = FI_CQ_COND_NONE;
	if (fi_cq_open(port->domain, &attr, &port->cq, NULL)) {
		attr.wait_obj = FI_WAIT_NONE;
		CHECK(fi_cq_open(port->domain, &attr, &port->cq, NULL));
	}
}

// Endpoints on shm are named by the process id, and one is not enabled where a killed
// process with the same id has left its file. They get another name before, as those
// of package fabric do.
static void take_free_name(struct fid_ep *ep)
{
	char name[256] = "", path[300];
	size_t size = sizeof name - 32, length;

	CHECK(fi_getname(&ep->fid, name, &size));
	length = strlen(name);
	snprintf(path, sizeof path, "/dev/shm/%s", name + strlen("fi_shm://"));
	if (access(path, F_OK))
		return;
	snprintf(name + length, sizeof name - length, ":%llx",
		 (unsigned long long)time(NULL));
	CHECK(fi_setname(&ep->fid, name, strlen(name) + 1));
}

void open_port(struct port *port, const struct order *order, size_t memory,
	       size_t slots)
{
	struct fi_eq_attr eq;
	struct fi_av_attr av;

	memset(port, 0, sizeof *port);
	port->info = find_info(order);
	memset(&eq, 0, sizeof eq);
	eq.size = 64;
	eq.wait_obj = FI_WAIT_NONE;
	memset(&av, 0, sizeof av);
	av.type = FI_AV_TABLE;
	CHECK(fi_fabric(port->info->fabric_attr, &port->fabric, NULL));
	CHECK(fi_eq_open(port->fabric, &eq, &port->eq, NULL));
	CHECK(fi_domain(port->fabric, port->info, &port->domain, NULL));
	CHECK(fi_av_open(port->domain, &av, &port->av, NULL));
	open_queue(port);
	CHECK(fi_endpoint(port->domain, port->info, &port->ep, NULL));
	CHECK(fi_ep_bind(port->ep, &port->av->fid, 0));
	CHECK(fi_ep_bind(port->ep, &port->eq->fid, 0));
	CHECK(fi_ep_bind(port->ep, &port->cq->fid, FI_TRANSMIT | FI_RECV));
	if (!strcmp(order->provider, "shm"))
		take_free_name(port->ep);
	CHECK(fi_enable(port->ep));

	port->memory = mmap(NULL, memory, PROT_READ | PROT_WRITE,
			    MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
	port->slots = calloc(slots, sizeof *port->slots);
	if (port->memory == MAP_FAILED || !port->slots)
		die("memory", -FI_ENOMEM);
	// Pages that nobody has written to are all the same one, which the
	// processor keeps at hand.
	memset(port->memory, 1, memory);
	for (size_t i = 0; i < slots; i++)
		port->slots[i].index = i;
	if (port->info->domain_attr->mr_mode & FI_MR_LOCAL) {
		CHECK(fi_mr_reg(port->domain, port->memory, memory,
				FI_SEND | FI_RECV, 0, 1, 0, &port->mr, NULL));
		port->desc = fi_mr_desc(port->mr);
	}
	// The provider's own progress thread needs the core more.
	port->block = !strcmp(port->info->fabric_attr->prov_name, "sockets");
}

void close_port(struct port *port)
{
	CHECK(fi_close(&port->ep->fid));
	if (port->mr)
		CHECK(fi_close(&port->mr->fid));
	CHECK(fi_close(&port->cq->fid));
	CHECK(fi_close(&port->av->fid));
	CHECK(fi_close(&port->eq->fid));
	CHECK(fi_close(&port->domain->fid));
	CHECK(fi_close(&port->fabric->fid));
	fi_freeinfo(port->info);
	free(port->slots);
}
