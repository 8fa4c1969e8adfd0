//go:build linux

#include "addresses.h"

#include <string.h>

#define HEADERS FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

int weft_av_open_config(struct fid_domain *domain,
			const struct weft_av_config *config, struct fid_av **av)
{
	struct fi_av_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.type = (enum fi_av_type)config->type;
	attr.rx_ctx_bits = config->rx_ctx_bits;
	attr.count = config->count;
	attr.ep_per_node = config->per_node;
	attr.flags = config->flags;
	attr.name = config->name;
	return fi_av_open(domain, &attr, av, NULL);
}

static void forget(uint64_t *results, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		results[i] = FI_ADDR_NOTAVAIL;
}

int weft_av_insert_many(struct fid_av *av, const void *addresses, uint64_t count,
			uint64_t *results, int32_t *errors)
{
	int ret;

	forget(results, count);
	memset(errors, 0, count * sizeof *errors);
	ret = fi_av_insert(av, addresses, count, results, FI_SYNC_ERR, errors);
	if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP || ret == -FI_EBADFLAGS) {
		forget(results, count);
		memset(errors, 0, count * sizeof *errors);
		ret = fi_av_insert(av, addresses, count, results, 0, NULL);
	}
	return ret;
}

int weft_av_insertsvc(struct fid_av *av, const char *node, const char *service,
		      uint64_t *result)
{
	int ret;

	forget(result, 1);
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, insertsvc))
		return -FI_ENOSYS;
	ret = fi_av_insertsvc(av, node, service, result, 0, NULL);
	if (ret < 0)
		return ret;
	return ret == 1 && *result != FI_ADDR_NOTAVAIL ? 0 : -FI_EINVAL;
}

int weft_av_insertsym(struct fid_av *av, const char *node, uint64_t nodes,
		      const char *service, uint64_t services, uint64_t *results)
{
	forget(results, nodes * services);
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, insertsym))
		return -FI_ENOSYS;
	return fi_av_insertsym(av, node, nodes, service, services, results, 0,
			       NULL);
}

int weft_av_remove_many(struct fid_av *av, uint64_t *addresses, uint64_t count)
{
	return fi_av_remove(av, addresses, count, 0);
}

int weft_av_lookup(struct fid_av *av, uint64_t address, void *buf,
		   uint64_t *length)
{
	size_t n = *length;
	int ret = fi_av_lookup(av, address, buf, &n);

	*length = n;
	return ret;
}

int weft_av_straddr(struct fid_av *av, const void *address, char *buf,
		    uint64_t *length)
{
	size_t n = *length;

	if (!fi_av_straddr(av, address, buf, &n))
		return -FI_EINVAL;
	*length = n;
	return 0;
}

int weft_av_insert_auth_key(struct fid_av *av, const void *key, uint64_t size,
			    uint64_t *result)
{
#if FI_VERSION_GE(HEADERS, FI_VERSION(2, 0))
	fi_addr_t to = FI_ADDR_NOTAVAIL;
	int ret = fi_av_insert_auth_key(av, key, size, &to, 0);

	*result = to;
	return ret;
#else
	(void)av;
	(void)key;
	(void)size;
	(void)result;
	return -FI_ENOSYS;
#endif
}

int weft_av_lookup_auth_key(struct fid_av *av, uint64_t address, void *key,
			    uint64_t *size)
{
#if FI_VERSION_GE(HEADERS, FI_VERSION(2, 0))
	size_t n = *size;
	int ret = fi_av_lookup_auth_key(av, address, key, &n);

	*size = n;
	return ret;
#else
	(void)av;
	(void)address;
	(void)key;
	(void)size;
	return -FI_ENOSYS;
#endif
}

int weft_av_set_user_id(struct fid_av *av, uint64_t address, uint64_t id)
{
#if FI_VERSION_GE(HEADERS, FI_VERSION(2, 0))
	return fi_av_set_user_id(av, address, id, 0);
#else
	(void)av;
	(void)address;
	(void)id;
	return -FI_ENOSYS;
#endif
}

uint64_t weft_group_addr(uint64_t address, uint32_t group)
{
#if FI_VERSION_GE(HEADERS, FI_VERSION(2, 0))
	return fi_group_addr(address, group);
#else
	(void)group;
	return address;
#endif
}

int weft_av_set_open(struct fid_av *av, uint64_t capacity, uint64_t first,
		     const void *key, uint64_t key_size, uint64_t flags,
		     struct fid_av_set **set)
{
	struct fi_av_set_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.count = capacity;
	attr.start_addr = first;
	attr.end_addr = first;
	attr.stride = first == FI_ADDR_NOTAVAIL ? 0 : 1;
	attr.comm_key = (uint8_t *)key;
	attr.comm_key_size = key_size;
	attr.flags = flags;
	return fi_av_set(av, &attr, set, NULL);
}

int weft_av_set_insert(struct fid_av_set *set, uint64_t address)
{
	return fi_av_set_insert(set, address);
}

int weft_av_set_remove(struct fid_av_set *set, uint64_t address)
{
	return fi_av_set_remove(set, address);
}

int weft_av_set_union(struct fid_av_set *to, const struct fid_av_set *from)
{
	return fi_av_set_union(to, from);
}

int weft_av_set_addr(struct fid_av_set *set, uint64_t *address)
{
	fi_addr_t to = FI_ADDR_NOTAVAIL;
	int ret = fi_av_set_addr(set, &to);

	*address = to;
	return ret;
}
