// Address vectors, and sets of their addresses.
#ifndef WEFT_ADDRESSES_H
#define WEFT_ADDRESSES_H

#include "shim.h"

#include <rdma/fi_collective.h>

struct weft_av_config {
	uint32_t type;
	int32_t rx_ctx_bits;
	uint64_t count;
	uint64_t per_node;
	uint64_t flags;
	const char *name;
};

int weft_av_open_config(struct fid_domain *domain,
			const struct weft_av_config *config, struct fid_av **av);

// Inserts count addresses that lie behind each other. Each of results is an
// address or FI_ADDR_NOTAVAIL, and the same member of errors says why, where
// the provider does.
int weft_av_insert_many(struct fid_av *av, const void *addresses, uint64_t count,
			uint64_t *results, int32_t *errors);
int weft_av_insertsvc(struct fid_av *av, const char *node, const char *service,
		      uint64_t *result);
int weft_av_insertsym(struct fid_av *av, const char *node, uint64_t nodes,
		      const char *service, uint64_t services,
		      uint64_t *results);
int weft_av_remove_many(struct fid_av *av, uint64_t *addresses, uint64_t count);
int weft_av_lookup(struct fid_av *av, uint64_t address, void *buf,
		   uint64_t *length);
int weft_av_straddr(struct fid_av *av, const void *address, char *buf,
		    uint64_t *length);
int weft_av_insert_auth_key(struct fid_av *av, const void *key, uint64_t size,
			    uint64_t *result);
int weft_av_lookup_auth_key(struct fid_av *av, uint64_t address, void *key,
			    uint64_t *size);
int weft_av_set_user_id(struct fid_av *av, uint64_t address, uint64_t id);
uint64_t weft_group_addr(uint64_t address, uint32_t group);

// first is a peer to begin with, or FI_ADDR_NOTAVAIL for none.
int weft_av_set_open(struct fid_av *av, uint64_t capacity, uint64_t first,
		     const void *key, uint64_t key_size, uint64_t flags,
		     struct fid_av_set **set);
int weft_av_set_insert(struct fid_av_set *set, uint64_t address);
int weft_av_set_remove(struct fid_av_set *set, uint64_t address);
int weft_av_set_union(struct fid_av_set *to, const struct fid_av_set *from);
int weft_av_set_addr(struct fid_av_set *set, uint64_t *address);

#endif
