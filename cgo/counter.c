//go:build linux

#include "counter.h"

#include <string.h>

int weft_cntr_open(struct fid_domain *domain, int wait, struct fid_cntr **cntr)
{
	struct fi_cntr_attr attr;

	if (!FI_CHECK_OP(domain->ops, struct fi_ops_domain, cntr_open))
		return -FI_ENOSYS;
	memset(&attr, 0, sizeof attr);
	attr.events = FI_CNTR_EVENTS_COMP;
	attr.wait_obj = (enum fi_wait_obj)wait;
	return fi_cntr_open(domain, &attr, cntr, NULL);
}

int weft_cntr_add(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_add(cntr, value);
}

int weft_cntr_adderr(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_adderr(cntr, value);
}

int weft_cntr_set(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_set(cntr, value);
}

int weft_cntr_seterr(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_seterr(cntr, value);
}

int weft_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout_ms)
{
	if (!FI_CHECK_OP(cntr->ops, struct fi_ops_cntr, wait))
		return -FI_ENOSYS;
	return fi_cntr_wait(cntr, threshold, timeout_ms);
}
