// Endpoints in parts: several contexts of one endpoint, one context of several
// endpoints, and other names of an endpoint.
#ifndef WEFT_CONTEXTS_H
#define WEFT_CONTEXTS_H

#include "shim.h"

void weft_set_contexts(struct fi_info *info, uint64_t transmit, uint64_t receive);
uint64_t weft_shared_context(void);

int weft_scalable_ep(struct fid_domain *domain, struct fi_info *info,
		     struct fid_ep **sep);
int weft_scalable_bind(struct fid_ep *sep, struct fid *fid);
int weft_tx_context(struct fid_ep *sep, int index, const struct fi_info *info,
		    struct fid_ep **ep);
int weft_rx_context(struct fid_ep *sep, int index, const struct fi_info *info,
		    struct fid_ep **ep);
int weft_stx_context(struct fid_domain *domain, struct fi_info *info,
		     struct fid_stx **stx);
int weft_srx_context(struct fid_domain *domain, struct fi_info *info,
		     struct fid_ep **srx);
uint64_t weft_rx_addr(uint64_t address, int index, int bits);

int weft_alias(struct fid_ep *ep, uint64_t flags, struct fid_ep **alias);
int weft_get_op_flags(struct fid_ep *ep, uint64_t *flags);
int weft_set_op_flags(struct fid_ep *ep, uint64_t flags);

#endif
