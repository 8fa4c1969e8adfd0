//go:build linux

#include "shim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Providers number and describe themselves by what the caller says it was
// built for; the library at run time may be newer than the headers, and then
// an API version of the headers is the highest that the structs here fit.
uint64_t weft_highest_version(void)
{
	uint32_t library = fi_version();
	uint32_t headers = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

	return FI_VERSION_LT(library, headers) ? library : headers;
}

// A provider may install handlers when it is loaded, opened or started.
#define KEEPING_HANDLERS(call)           \
	do {                             \
		weft_save_handlers();    \
		call;                    \
		weft_restore_handlers(); \
	} while (0)

int weft_fabric(struct fi_info *info, struct fid_fabric **fabric)
{
	int ret;

	KEEPING_HANDLERS(ret = fi_fabric(info->fabric_attr, fabric, NULL));
	return ret;
}

int weft_domain(struct fid_fabric *fabric, struct fi_info *info,
		struct fid_domain **domain)
{
	int ret;

	KEEPING_HANDLERS(ret = fi_domain(fabric, info, domain, NULL));
	return ret;
}

int weft_domain_bind(struct fid_domain *domain, struct fid *fid, uint64_t flags)
{
	if (!FI_CHECK_OP(domain->fid.ops, struct fi_ops, bind))
		return -FI_ENOSYS;
	return fi_domain_bind(domain, fid, flags);
}

int weft_endpoint(struct fid_domain *domain, struct fi_info *info,
		  uint64_t mr_mode, uint64_t receive_caps, struct fid_ep **ep)
{
	struct fi_info *own = NULL;
	int ret;

	if (mr_mode || receive_caps) {
		// The info is others' as well.
		own = fi_dupinfo(info);
		if (!own)
			return -FI_ENOMEM;
		own->domain_attr->mr_mode |= (int)mr_mode;
		own->caps |= receive_caps;
		own->rx_attr->caps |= receive_caps;
		info = own;
	}
	KEEPING_HANDLERS(ret = fi_endpoint(domain, info, ep, NULL));
	if (own)
		fi_freeinfo(own);
	return ret;
}

int weft_enable(struct fid_ep *ep)
{
	int ret;

	KEEPING_HANDLERS(ret = fi_enable(ep));
	return ret;
}

int weft_cq_open(struct fid_domain *domain, int wait, int format, uint64_t *size,
		 struct fid_cq **cq)
{
	struct fi_cq_attr attr;
	int ret;

	memset(&attr, 0, sizeof attr);
	attr.size = *size;
	attr.format = (enum fi_cq_format)format;
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

int weft_mr_reg(struct fid_domain *domain, const void *buf, uint64_t length,
		uint64_t access, uint64_t key, struct fid_mr **mr)
{
	return fi_mr_reg(domain, buf, length, access, 0, key, 0, mr, NULL);
}

int weft_mr_reg_at(struct fid_domain *domain, uintptr_t base, uint64_t length,
		   uint64_t access, uint64_t key, struct fid_mr **mr)
{
	return weft_mr_reg(domain, (const void *)base, length, access, key, mr);
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
