// Whose datagrams endpoints of ofi_rxd get.
#ifndef WEFT_DATAGRAMS_H
#define WEFT_DATAGRAMS_H

#include "shim.h"

// weft_doubt_datagrams has endpoints that are opened and enabled by the next two get no datagram but
// those of peers. -1: libfabric, as it was built, cannot be had to do that.
int weft_doubt_datagrams(void);

// These are weft_endpoint and weft_enable of ofi_rxd.
int weft_datagram_endpoint(struct fid_domain *domain, struct fi_info *info, uint64_t mr_mode,
			   uint64_t receive_caps, struct fid_ep **ep);
int weft_datagram_enable(struct fid_ep *ep);

#endif
