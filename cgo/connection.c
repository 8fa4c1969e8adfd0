//go:build linux

#include "connection.h"

int weft_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_pep **pep)
{
	return fi_passive_ep(fabric, info, pep, NULL);
}

int weft_pep_bind(struct fid_pep *pep, struct fid *fid)
{
	return fi_pep_bind(pep, fid, 0);
}

int weft_backlog(struct fid_pep *pep, int backlog)
{
	return fi_control(&pep->fid, FI_BACKLOG, &backlog);
}

int weft_listen(struct fid_pep *pep)
{
	return fi_listen(pep);
}

int weft_reject(struct fid_pep *pep, const struct fi_info *info,
		const void *data, uint64_t length)
{
	return fi_reject(pep, info->handle, data, length);
}

int weft_connect(struct fid_ep *ep, const void *address, const void *data,
		 uint64_t length)
{
	return fi_connect(ep, address, data, length);
}

int weft_accept(struct fid_ep *ep, const void *data, uint64_t length)
{
	return fi_accept(ep, data, length);
}

int weft_shutdown(struct fid_ep *ep)
{
	return fi_shutdown(ep, 0);
}

int weft_getpeer(struct fid_ep *ep, void *address, uint64_t *length)
{
	size_t size = *length;
	int ret = fi_getpeer(ep, address, &size);

	*length = size;
	return ret;
}

int weft_name_of(struct fid *fid, void *address, uint64_t *length)
{
	size_t size = *length;
	int ret = fi_getname(fid, address, &size);

	*length = size;
	return ret;
}

int weft_set_name(struct fid *fid, const void *address, uint64_t length)
{
	return fi_setname(fid, (void *)address, length);
}
