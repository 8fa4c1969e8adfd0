#include "shim.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

// Providers install signal handlers of their own (shm does, for SIGINT and
// SIGSEGV among others) without SA_ONSTACK. Go runs goroutines on small stacks
// and relies on its own handlers, so a call that may load or start a provider
// is put between these two: a handler that appeared meanwhile and would run on
// a goroutine's stack is replaced by the one that was there.
struct handlers {
	struct sigaction action[NSIG];
};

static void save_handlers(struct handlers *h)
{
	for (int s = 1; s < NSIG; s++)
		if (sigaction(s, NULL, &h->action[s]))
			memset(&h->action[s], 0, sizeof h->action[s]);
}

static void restore_handlers(const struct handlers *h)
{
	for (int s = 1; s < NSIG; s++) {
		struct sigaction now;

		if (sigaction(s, NULL, &now))
			continue;
		if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN ||
		    (now.sa_flags & SA_ONSTACK))
			continue;
		if (now.sa_handler != h->action[s].sa_handler)
			sigaction(s, &h->action[s], NULL);
	}
}

// Providers number and describe themselves by what the caller says it was
// built for; the library at run time may be newer than the headers, and then
// an API version of the headers is the highest that the structs here fit.
uint64_t weft_highest_version(void)
{
	uint32_t library = fi_version();
	uint32_t headers = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

	return FI_VERSION_LT(library, headers) ? library : headers;
}

static char *copy(const char *s)
{
	return s && *s ? strdup(s) : NULL;
}

int weft_getinfo(const struct weft_hints *h, const char *node,
		 const char *service, uint64_t flags, struct fi_info **info)
{
	struct handlers saved;
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	hints->caps = h->caps;
	hints->mode = h->mode;
	hints->addr_format = h->addr_format;
	hints->ep_attr->type = h->ep_type;
	hints->ep_attr->protocol = h->ep_protocol;
	hints->ep_attr->max_msg_size = h->max_message;
	hints->domain_attr->threading = h->threading;
	hints->domain_attr->control_progress = h->control_progress;
	hints->domain_attr->data_progress = h->data_progress;
	hints->domain_attr->resource_mgmt = h->resource_mgmt;
	hints->domain_attr->av_type = h->av_type;
	hints->domain_attr->mr_mode = h->mr_mode;
	hints->domain_attr->cq_data_size = h->cq_data_size;
	hints->tx_attr->msg_order = h->tx_order;
	hints->rx_attr->msg_order = h->rx_order;
	hints->tx_attr->comp_order = h->tx_completion_order;
	hints->rx_attr->comp_order = h->rx_completion_order;
	hints->tx_attr->op_flags = h->tx_op_flags;
	hints->rx_attr->op_flags = h->rx_op_flags;
	hints->tx_attr->size = h->tx_size;
	hints->rx_attr->size = h->rx_size;
	hints->tx_attr->inject_size = h->inject_size;
	hints->tx_attr->iov_limit = h->tx_iov_limit;
	hints->rx_attr->iov_limit = h->rx_iov_limit;
	hints->fabric_attr->prov_name = copy(h->provider);
	hints->fabric_attr->name = copy(h->fabric);
	hints->domain_attr->name = copy(h->domain);

	save_handlers(&saved);
	ret = fi_getinfo((uint32_t)weft_highest_version(), node, service, flags,
			 hints, info);
	restore_handlers(&saved);
	fi_freeinfo(hints);
	return ret;
}

// A member of an anonymous union from 2.x on, which Go cannot name.
int weft_data_progress(const struct fi_info *info)
{
	return (int)info->domain_attr->data_progress;
}

int weft_fabric(struct fi_info *info, struct fid_fabric **fabric)
{
	struct handlers saved;
	int ret;

	save_handlers(&saved);
	ret = fi_fabric(info->fabric_attr, fabric, NULL);
	restore_handlers(&saved);
	return ret;
}

int weft_domain(struct fid_fabric *fabric, struct fi_info *info,
		struct fid_domain **domain)
{
	struct handlers saved;
	int ret;

	save_handlers(&saved);
	ret = fi_domain(fabric, info, domain, NULL);
	restore_handlers(&saved);
	return ret;
}

int weft_endpoint(struct fid_domain *domain, struct fi_info *info,
		  struct fid_ep **ep)
{
	struct handlers saved;
	int ret;

	save_handlers(&saved);
	ret = fi_endpoint(domain, info, ep, NULL);
	restore_handlers(&saved);
	return ret;
}

int weft_enable(struct fid_ep *ep)
{
	struct handlers saved;
	int ret;

	save_handlers(&saved);
	ret = fi_enable(ep);
	restore_handlers(&saved);
	return ret;
}

int weft_eq_open(struct fid_fabric *fabric, uint64_t size, struct fid_eq **eq)
{
	struct fi_eq_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.size = size;
	attr.wait_obj = FI_WAIT_NONE;
	return fi_eq_open(fabric, &attr, eq, NULL);
}

int weft_cq_open(struct fid_domain *domain, int wait, uint64_t *size,
		 struct fid_cq **cq)
{
	struct fi_cq_attr attr;
	int ret;

	memset(&attr, 0, sizeof attr);
	attr.size = *size;
	attr.format = FI_CQ_FORMAT_TAGGED;
	attr.wait_obj = (enum fi_wait_obj)wait;
	attr.wait_cond = FI_CQ_COND_NONE;
	ret = fi_cq_open(domain, &attr, cq, NULL);
	// efa says here how many entries it made.
	*size = attr.size;
	return ret;
}

int weft_av_open(struct fid_domain *domain, uint64_t count, struct fid_av **av)
{
	struct fi_av_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.type = FI_AV_TABLE;
	attr.count = count;
	return fi_av_open(domain, &attr, av, NULL);
}

int weft_close(struct fid *fid)
{
	return fi_close(fid);
}

int weft_ep_bind(struct fid_ep *ep, struct fid *fid, uint64_t flags)
{
	return fi_ep_bind(ep, fid, flags);
}

int weft_getname(struct fid_ep *ep, void *address, uint64_t *length)
{
	size_t size = *length;
	int ret = fi_getname(&ep->fid, address, &size);

	*length = size;
	return ret;
}

// fi_av_insert returns how many addresses it took; weft inserts one at a time
// and wants to know why it was not taken.
int weft_av_insert(struct fid_av *av, const void *address, uint64_t *result)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	int ret = fi_av_insert(av, address, 1, &addr, 0, NULL);

	*result = addr;
	if (ret == 1 && addr != FI_ADDR_NOTAVAIL)
		return 0;
	return ret < 0 ? ret : -FI_EINVAL;
}

int weft_av_remove(struct fid_av *av, uint64_t address)
{
	fi_addr_t addr = address;

	return fi_av_remove(av, &addr, 1, 0);
}

int weft_mr_reg(struct fid_domain *domain, const void *buf, uint64_t length,
		uint64_t access, uint64_t key, struct fid_mr **mr)
{
	return fi_mr_reg(domain, buf, length, access, 0, key, 0, mr, NULL);
}

uintptr_t weft_mr_desc(struct fid_mr *mr)
{
	return (uintptr_t)fi_mr_desc(mr);
}

uint64_t weft_mr_key(struct fid_mr *mr)
{
	return fi_mr_key(mr);
}

int weft_cancel(struct fid_ep *ep, void *context)
{
	return (int)fi_cancel(&ep->fid, context);
}

int weft_wait_fd(struct fid *fid, int *fd)
{
	return fi_control(fid, FI_GETWAIT, fd);
}

int weft_cq_signal(struct fid_cq *cq)
{
	return fi_cq_signal(cq);
}

int weft_trywait(struct fid_fabric *fabric, struct fid *fid)
{
	return fi_trywait(fabric, &fid, 1);
}

int weft_eq_read(struct fid_eq *eq, struct weft_event *out)
{
	// CM entries carry data of the peer's behind the struct.
	union {
		struct fi_eq_entry entry;
		struct fi_eq_cm_entry cm;
		char room[512];
	} buf;
	struct fi_eq_err_entry e;
	const char *text;
	uint32_t event = 0;
	ssize_t ret;

	memset(out, 0, sizeof *out);
	memset(&buf, 0, sizeof buf);
	ret = fi_eq_read(eq, &event, &buf, sizeof buf, 0);
	if (ret >= 0 && event) {
		out->event = event;
		return 1;
	}
	if (ret == 0 || ret == -FI_EAGAIN)
		return 0;
	if (ret != -FI_EAVAIL)
		return (int)ret;
	memset(&e, 0, sizeof e);
	ret = fi_eq_readerr(eq, &e, 0);
	if (ret == 0 || ret == -FI_EAGAIN)
		return 0;
	if (ret < 0)
		return (int)ret;
	out->err = e.err < 0 ? -e.err : e.err;
	out->prov_errno = e.prov_errno;
	text = fi_eq_strerror(eq, e.prov_errno, e.err_data, out->text,
			      sizeof out->text);
	if (text && text != out->text)
		strncpy(out->text, text, sizeof out->text - 1);
	out->text[sizeof out->text - 1] = 0;
	return 1;
}
