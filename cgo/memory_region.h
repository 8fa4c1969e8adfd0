// Memory registration in full: several buffers, attributes, device memory, keys
// of every mode, and the calls on a region that exists.
#ifndef WEFT_MEMORY_REGION_H
#define WEFT_MEMORY_REGION_H

#include "shim.h"

#define WEFT_REGION_BUFFERS 32

// What to register. Addresses are numbers, so that Go can fill this in without
// giving C a pointer to a pointer; whoever does keeps the memory in place. Laid
// out like RegionRequest in memory_region.go.
struct weft_region_request {
	uint64_t access;
	uint64_t offset;
	uint64_t key;
	uint64_t flags;
	uint64_t auth_key;
	uint64_t auth_key_size;
	int32_t iface;
	int32_t dmabuf_fd; // with dmabuf: the file, and buffer[0] is its part
	uint64_t device;
	uint64_t dmabuf; // 1: buffer[0].iov_base is where it is mapped
	uint64_t dmabuf_offset;
	uint64_t count;
	struct iovec buffer[WEFT_REGION_BUFFERS];
};

struct weft_region_modes {
	int32_t local, raw, virtual_address, allocated, provider_key, mmu_notify,
		rma_event, endpoint, hmem, collective;
};

int weft_mr_register(struct fid_domain *domain,
		     const struct weft_region_request *r, struct fid_mr **mr);
int weft_mr_register_vector(struct fid_domain *domain,
			    const struct weft_region_request *r,
			    struct fid_mr **mr);
int weft_mr_bind(struct fid_mr *mr, struct fid *fid, uint64_t flags);
int weft_mr_enable(struct fid_mr *mr);
int weft_mr_refresh(struct fid_mr *mr, const struct weft_region_request *r);
int weft_mr_raw_attr(struct fid_mr *mr, uint64_t *base, uint8_t *key,
		     uint64_t *size);
int weft_mr_map_raw(struct fid_domain *domain, uint64_t base, uint8_t *key,
		    uint64_t size, uint64_t *mapped);
int weft_mr_unmap_key(struct fid_domain *domain, uint64_t key);
uint64_t weft_mr_iov_limit(const struct fi_info *info);
uint64_t weft_mr_key_size(const struct fi_info *info);
void weft_mr_modes(const struct fi_info *info, struct weft_region_modes *m);
int weft_has_dmabuf(void);
int weft_ze_device(int driver, int device);

#endif
