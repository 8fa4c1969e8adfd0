// Connected endpoints: listening, connecting, and what both sides say to each
// other meanwhile.
#ifndef WEFT_CONNECTION_H
#define WEFT_CONNECTION_H

#include "shim.h"

int weft_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_pep **pep);
int weft_pep_bind(struct fid_pep *pep, struct fid *fid);
int weft_backlog(struct fid_pep *pep, int backlog);
int weft_listen(struct fid_pep *pep);
int weft_reject(struct fid_pep *pep, const struct fi_info *info,
		const void *data, uint64_t length);

int weft_connect(struct fid_ep *ep, const void *address, const void *data,
		 uint64_t length);
int weft_accept(struct fid_ep *ep, const void *data, uint64_t length);
int weft_shutdown(struct fid_ep *ep);
int weft_getpeer(struct fid_ep *ep, void *address, uint64_t *length);

// Both kinds of endpoint have names: which is said by what follows the fid.
int weft_name_of(struct fid *fid, void *address, uint64_t *length);
int weft_set_name(struct fid *fid, const void *address, uint64_t length);

#endif
