//go:build linux

#include "memory_region.h"

#include <string.h>

// The calls on regions go through tables of the provider's that are not all
// filled in.
static int can_control(const struct fid *fid)
{
	return FI_CHECK_OP(fid->ops, struct fi_ops, control);
}

int weft_has_dmabuf(void)
{
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 20))
	return FI_VERSION_GE(fi_version(), FI_VERSION(1, 20));
#else
	return 0;
#endif
}

// A level zero device is named by two numbers that libfabric packs into one.
int weft_ze_device(int driver, int device)
{
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(2, 0))
	return fi_hmem_ze_device(driver, device);
#else
	return (int)((uint32_t)driver << 16 | (uint32_t)(uint16_t)device);
#endif
}

static void set_device(struct fi_mr_attr *attr, uint64_t device)
{
	attr->device.reserved = device;
	switch (attr->iface) {
	case FI_HMEM_CUDA:
		attr->device.cuda = (int)device;
		break;
	case FI_HMEM_ZE:
		attr->device.ze = (int)device;
		break;
	case FI_HMEM_NEURON:
		attr->device.neuron = (int)device;
		break;
	case FI_HMEM_SYNAPSEAI:
		attr->device.synapseai = (int)device;
		break;
	default:
		break;
	}
}

int weft_mr_register(struct fid_domain *domain,
		     const struct weft_region_request *r, struct fid_mr **mr)
{
	struct fi_mr_attr attr;
	uint64_t flags = r->flags;

	memset(&attr, 0, sizeof attr);
	attr.iov_count = r->count;
	attr.access = r->access;
	attr.offset = r->offset;
	attr.requested_key = r->key;
	attr.auth_key = (uint8_t *)r->auth_key;
	attr.auth_key_size = r->auth_key_size;
	attr.iface = (enum fi_hmem_iface)r->iface;
	set_device(&attr, r->device);
	if (r->dmabuf) {
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 20))
		struct fi_mr_dmabuf dmabuf;

		if (!weft_has_dmabuf())
			return -FI_ENOSYS;
		memset(&dmabuf, 0, sizeof dmabuf);
		dmabuf.fd = r->dmabuf_fd;
		dmabuf.offset = r->dmabuf_offset;
		dmabuf.len = r->buffer[0].iov_len;
		dmabuf.base_addr = r->buffer[0].iov_base;
		attr.dmabuf = &dmabuf;
		attr.iov_count = 1;
		return fi_mr_regattr(domain, &attr, flags | FI_MR_DMABUF, mr);
#else
		return -FI_ENOSYS;
#endif
	}
	attr.mr_iov = r->buffer;
	return fi_mr_regattr(domain, &attr, flags, mr);
}

int weft_mr_register_vector(struct fid_domain *domain,
			    const struct weft_region_request *r,
			    struct fid_mr **mr)
{
	return fi_mr_regv(domain, r->buffer, r->count, r->access, r->offset,
			  r->key, r->flags, mr, NULL);
}

int weft_mr_bind(struct fid_mr *mr, struct fid *fid, uint64_t flags)
{
	if (!FI_CHECK_OP(mr->fid.ops, struct fi_ops, bind))
		return -FI_ENOSYS;
	return fi_mr_bind(mr, fid, flags);
}

int weft_mr_enable(struct fid_mr *mr)
{
	return can_control(&mr->fid) ? fi_mr_enable(mr) : -FI_ENOSYS;
}

int weft_mr_refresh(struct fid_mr *mr, const struct weft_region_request *r)
{
	if (!can_control(&mr->fid))
		return -FI_ENOSYS;
	return fi_mr_refresh(mr, r->buffer, r->count, r->flags);
}

int weft_mr_raw_attr(struct fid_mr *mr, uint64_t *base, uint8_t *key,
		     uint64_t *size)
{
	size_t n = *size;
	int ret;

	if (!can_control(&mr->fid))
		return -FI_ENOSYS;
	ret = fi_mr_raw_attr(mr, base, key, &n, 0);
	*size = n;
	return ret;
}

int weft_mr_map_raw(struct fid_domain *domain, uint64_t base, uint8_t *key,
		    uint64_t size, uint64_t *mapped)
{
	if (!can_control(&domain->fid))
		return -FI_ENOSYS;
	return fi_mr_map_raw(domain, base, key, size, mapped, 0);
}

int weft_mr_unmap_key(struct fid_domain *domain, uint64_t key)
{
	if (!can_control(&domain->fid))
		return -FI_ENOSYS;
	return fi_mr_unmap_key(domain, key);
}

uint64_t weft_mr_iov_limit(const struct fi_info *info)
{
	return info->domain_attr ? info->domain_attr->mr_iov_limit : 0;
}

uint64_t weft_mr_key_size(const struct fi_info *info)
{
	return info->domain_attr ? info->domain_attr->mr_key_size : 0;
}

void weft_mr_modes(const struct fi_info *info, struct weft_region_modes *m)
{
	int mode = info->domain_attr ? info->domain_attr->mr_mode : 0;

	m->local = !!(mode & FI_MR_LOCAL);
	m->raw = !!(mode & FI_MR_RAW);
	m->virtual_address = !!(mode & FI_MR_VIRT_ADDR);
	m->allocated = !!(mode & FI_MR_ALLOCATED);
	m->provider_key = !!(mode & FI_MR_PROV_KEY);
	m->mmu_notify = !!(mode & FI_MR_MMU_NOTIFY);
	m->rma_event = !!(mode & FI_MR_RMA_EVENT);
	m->endpoint = !!(mode & FI_MR_ENDPOINT);
	m->hmem = !!(mode & FI_MR_HMEM);
	m->collective = !!(mode & FI_MR_COLLECTIVE);
}
