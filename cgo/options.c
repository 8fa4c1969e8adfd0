//go:build linux

#include "options.h"

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fi_ext.h>

#define HEADERS FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)
#define EFA(n) (-FI_PROV_SPECIFIC_EFA + (n))

// Which options there are, from which version on, and their numbers, which are
// part of libfabric's binary interface: the headers cannot be asked for a
// member of an enumeration.
static const struct {
	int name;
	uint32_t since;
} options[] = {
	[WEFT_OPT_MIN_MULTI_RECV] = { FI_OPT_MIN_MULTI_RECV, 0 },
	[WEFT_OPT_CM_DATA_SIZE] = { FI_OPT_CM_DATA_SIZE, 0 },
	[WEFT_OPT_BUFFERED_MIN] = { FI_OPT_BUFFERED_MIN, 0 },
	[WEFT_OPT_BUFFERED_LIMIT] = { FI_OPT_BUFFERED_LIMIT, 0 },
	[WEFT_OPT_SEND_BUF_SIZE] = { FI_OPT_SEND_BUF_SIZE, 0 },
	[WEFT_OPT_RECV_BUF_SIZE] = { FI_OPT_RECV_BUF_SIZE, 0 },
	[WEFT_OPT_TX_SIZE] = { FI_OPT_TX_SIZE, 0 },
	[WEFT_OPT_RX_SIZE] = { FI_OPT_RX_SIZE, 0 },
	[WEFT_OPT_HMEM_P2P] = { FI_OPT_FI_HMEM_P2P, 0 },
	[WEFT_OPT_CUDA_API_PERMITTED] = { 10, FI_VERSION(1, 18) },
	[WEFT_OPT_SHARED_MEMORY_PERMITTED] = { 11, FI_VERSION(1, 21) },
	[WEFT_OPT_MAX_MSG_SIZE] = { 12, FI_VERSION(1, 22) },
	[WEFT_OPT_MAX_TAGGED_SIZE] = { 13, FI_VERSION(1, 22) },
	[WEFT_OPT_MAX_RMA_SIZE] = { 14, FI_VERSION(1, 22) },
	[WEFT_OPT_MAX_ATOMIC_SIZE] = { 15, FI_VERSION(1, 22) },
	[WEFT_OPT_INJECT_MSG_SIZE] = { 16, FI_VERSION(1, 22) },
	[WEFT_OPT_INJECT_TAGGED_SIZE] = { 17, FI_VERSION(1, 22) },
	[WEFT_OPT_INJECT_RMA_SIZE] = { 18, FI_VERSION(1, 22) },
	[WEFT_OPT_INJECT_ATOMIC_SIZE] = { 19, FI_VERSION(1, 22) },
	[WEFT_OPT_EFA_RNR_RETRY] = { EFA(0), 0 },
	[WEFT_OPT_EFA_EMULATED_READ] = { EFA(1), FI_VERSION(1, 18) },
	[WEFT_OPT_EFA_EMULATED_WRITE] = { EFA(2), FI_VERSION(1, 18) },
	[WEFT_OPT_EFA_EMULATED_ATOMICS] = { EFA(3), FI_VERSION(1, 18) },
	[WEFT_OPT_EFA_USE_DEVICE_RDMA] = { EFA(4), FI_VERSION(1, 18) },
	[WEFT_OPT_EFA_SENDRECV_IN_ORDER] = { EFA(5), FI_VERSION(1, 20) },
	[WEFT_OPT_EFA_WRITE_IN_ORDER] = { EFA(6), FI_VERSION(1, 20) },
	[WEFT_OPT_EFA_HOMOGENEOUS_PEERS] = { EFA(7), FI_VERSION(2, 2) },
};

#if FI_VERSION_GE(HEADERS, FI_VERSION(2, 0))
_Static_assert(FI_OPT_CUDA_API_PERMITTED == 10, "FI_OPT_CUDA_API_PERMITTED");
_Static_assert(FI_OPT_SHARED_MEMORY_PERMITTED == 11, "FI_OPT_SHARED_MEMORY_PERMITTED");
_Static_assert(FI_OPT_MAX_MSG_SIZE == 12, "FI_OPT_MAX_MSG_SIZE");
_Static_assert(FI_OPT_MAX_TAGGED_SIZE == 13, "FI_OPT_MAX_TAGGED_SIZE");
_Static_assert(FI_OPT_MAX_RMA_SIZE == 14, "FI_OPT_MAX_RMA_SIZE");
_Static_assert(FI_OPT_MAX_ATOMIC_SIZE == 15, "FI_OPT_MAX_ATOMIC_SIZE");
_Static_assert(FI_OPT_INJECT_MSG_SIZE == 16, "FI_OPT_INJECT_MSG_SIZE");
_Static_assert(FI_OPT_INJECT_TAGGED_SIZE == 17, "FI_OPT_INJECT_TAGGED_SIZE");
_Static_assert(FI_OPT_INJECT_RMA_SIZE == 18, "FI_OPT_INJECT_RMA_SIZE");
_Static_assert(FI_OPT_INJECT_ATOMIC_SIZE == 19, "FI_OPT_INJECT_ATOMIC_SIZE");
_Static_assert(FI_OPT_EFA_EMULATED_READ == EFA(1), "FI_OPT_EFA_EMULATED_READ");
_Static_assert(FI_OPT_EFA_EMULATED_WRITE == EFA(2), "FI_OPT_EFA_EMULATED_WRITE");
_Static_assert(FI_OPT_EFA_EMULATED_ATOMICS == EFA(3), "FI_OPT_EFA_EMULATED_ATOMICS");
_Static_assert(FI_OPT_EFA_USE_DEVICE_RDMA == EFA(4), "FI_OPT_EFA_USE_DEVICE_RDMA");
_Static_assert(FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES == EFA(5),
	       "FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES");
_Static_assert(FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES == EFA(6),
	       "FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES");
#endif
#if FI_VERSION_GE(HEADERS, FI_VERSION(2, 4))
_Static_assert(FI_OPT_EFA_HOMOGENEOUS_PEERS == EFA(7), "FI_OPT_EFA_HOMOGENEOUS_PEERS");
#endif

static int known(int option)
{
	return option >= 0 &&
	       option < (int)(sizeof options / sizeof options[0]) &&
	       option != WEFT_OPT_XPU_TRIGGER &&
	       FI_VERSION_GE((uint32_t)HEADERS, options[option].since);
}

// HAS says whether there is a call at all: parts of endpoints may have none. The
// calls of active and passive endpoints are at the same place.
_Static_assert(offsetof(struct fid_ep, fid) == 0 &&
		       offsetof(struct fid_pep, fid) == 0 &&
		       offsetof(struct fid_ep, ops) == offsetof(struct fid_pep, ops),
	       "an endpoint begins with its fid and its calls");
#define HAS(fid, op) \
	FI_CHECK_OP(((struct fid_ep *)(fid))->ops, struct fi_ops_ep, op)

int weft_getopt(struct fid *fid, int option, int kind, uint64_t *value)
{
	size_t word = 0, length;
	int number = 0, ret;
	bool yes = false;

	if (!known(option) || !HAS(fid, getopt))
		return -FI_ENOSYS;
	switch (kind) {
	case WEFT_VALUE_SIZE:
		length = sizeof word;
		ret = fi_getopt(fid, FI_OPT_ENDPOINT, options[option].name, &word,
				&length);
		*value = word;
		return ret;
	case WEFT_VALUE_INT:
		length = sizeof number;
		ret = fi_getopt(fid, FI_OPT_ENDPOINT, options[option].name,
				&number, &length);
		*value = (uint64_t)(int64_t)number;
		return ret;
	default:
		length = sizeof yes;
		ret = fi_getopt(fid, FI_OPT_ENDPOINT, options[option].name, &yes,
				&length);
		*value = yes;
		return ret;
	}
}

int weft_setopt(struct fid *fid, int option, int kind, uint64_t value)
{
	size_t word = value;
	int number = (int)(int64_t)value;
	bool yes = value != 0;

	if (!known(option) || !HAS(fid, setopt))
		return -FI_ENOSYS;
	switch (kind) {
	case WEFT_VALUE_SIZE:
		return fi_setopt(fid, FI_OPT_ENDPOINT, options[option].name,
				 &word, sizeof word);
	case WEFT_VALUE_INT:
		return fi_setopt(fid, FI_OPT_ENDPOINT, options[option].name,
				 &number, sizeof number);
	default:
		return fi_setopt(fid, FI_OPT_ENDPOINT, options[option].name, &yes,
				 sizeof yes);
	}
}
