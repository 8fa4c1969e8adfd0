/* Registering memory, as verbs calls it. */
#include <errno.h>
#include <infiniband/verbs.h>

#include "device.h"
#include "engine.h"
#include "export.h"
#include "memory.h"
#include "settings.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct ibv_mr *reg(struct ibv_pd *pd, void *memory, size_t length, uint64_t iova, unsigned access)
{
	unsigned can = IBV_ACCESS_LOCAL_WRITE | (settings()->rdma_read ? IBV_ACCESS_REMOTE_READ : 0) |
		       (settings()->rdma_write ? IBV_ACCESS_REMOTE_WRITE : 0);
	struct region *region;

	if (access & ~(can | IBV_ACCESS_OPTIONAL_RANGE)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!length || ((access & IBV_ACCESS_REMOTE_WRITE) && !(access & IBV_ACCESS_LOCAL_WRITE))) {
		errno = EINVAL;
		return NULL;
	}
	if (!memory_present(memory, length)) {
		errno = EFAULT;
		return NULL;
	}
	engine_lock();
	region = region_create(pd, memory, length, iova, access);
	engine_unlock();
	if (!region)
		return NULL;
	__atomic_fetch_add(&((struct domain *)pd)->users, 1, __ATOMIC_SEQ_CST);
	return &region->mr;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *memory, size_t length, int access)
{
	return reg(pd, memory, length, (uint64_t)(uintptr_t)memory, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *memory, size_t length, uint64_t iova, unsigned access)
{
	return reg(pd, memory, length, iova, access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *memory, size_t length, uint64_t iova, int access)
{
	return reg(pd, memory, length, iova, (unsigned)access);
}

/* There is no other device whose memory could be shared. */
EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	(void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
	errno = EOPNOTSUPP;
	return NULL;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct domain *domain = (struct domain *)mr->pd;

	engine_lock();
	region_destroy((struct region *)mr);
	engine_unlock();
	__atomic_fetch_sub(&domain->users, 1, __ATOMIC_SEQ_CST);
	return 0;
}
