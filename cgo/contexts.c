//go:build linux

#include "contexts.h"

void weft_set_contexts(struct fi_info *info, uint64_t transmit, uint64_t receive)
{
	info->ep_attr->tx_ctx_cnt = (size_t)transmit;
	info->ep_attr->rx_ctx_cnt = (size_t)receive;
}

uint64_t weft_shared_context(void)
{
	return FI_SHARED_CONTEXT;
}

int weft_scalable_ep(struct fid_domain *domain, struct fi_info *info,
		     struct fid_ep **sep)
{
	return fi_scalable_ep(domain, info, sep, NULL);
}

int weft_scalable_bind(struct fid_ep *sep, struct fid *fid)
{
	return fi_scalable_ep_bind(sep, fid, 0);
}

// The attributes are copied: providers write into them.
int weft_tx_context(struct fid_ep *sep, int index, const struct fi_info *info,
		    struct fid_ep **ep)
{
	struct fi_tx_attr attr = *info->tx_attr;

	return fi_tx_context(sep, index, &attr, ep, NULL);
}

int weft_rx_context(struct fid_ep *sep, int index, const struct fi_info *info,
		    struct fid_ep **ep)
{
	struct fi_rx_attr attr = *info->rx_attr;

	return fi_rx_context(sep, index, &attr, ep, NULL);
}

int weft_stx_context(struct fid_domain *domain, struct fi_info *info,
		     struct fid_stx **stx)
{
	struct fi_tx_attr attr = *info->tx_attr;

	return fi_stx_context(domain, &attr, stx, NULL);
}

int weft_srx_context(struct fid_domain *domain, struct fi_info *info,
		     struct fid_ep **srx)
{
	struct fi_rx_attr attr = *info->rx_attr;

	return fi_srx_context(domain, &attr, srx, NULL);
}

uint64_t weft_rx_addr(uint64_t address, int index, int bits)
{
	return fi_rx_addr(address, index, bits);
}

int weft_alias(struct fid_ep *ep, uint64_t flags, struct fid_ep **alias)
{
	return fi_ep_alias(ep, alias, flags);
}

int weft_get_op_flags(struct fid_ep *ep, uint64_t *flags)
{
	return fi_control(&ep->fid, FI_GETOPSFLAG, flags);
}

int weft_set_op_flags(struct fid_ep *ep, uint64_t flags)
{
	return fi_control(&ep->fid, FI_SETOPSFLAG, &flags);
}
