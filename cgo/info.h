// What fi_getinfo is asked for and what it says, with what the headers at hand
// may lack.
#ifndef WEFT_INFO_H
#define WEFT_INFO_H

#include "shim.h"

#define WEFT_HEADERS FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

// Bits that one version of the headers or another does not have. Their numbers
// are part of libfabric's binary interface.
#define WEFT_CAP_TAGGED_DIRECTED_RECV (1ULL << 45)
#define WEFT_CAP_TAGGED_MULTI_RECV (1ULL << 46)
#define WEFT_CAP_EXACT_DIRECTED_RECV (1ULL << 48)
#if FI_VERSION_GE(WEFT_HEADERS, FI_VERSION(2, 0))
#define WEFT_UNKNOWN_CAPS 0ULL
#else
#define WEFT_UNKNOWN_CAPS                                                      \
	(WEFT_CAP_TAGGED_DIRECTED_RECV | WEFT_CAP_TAGGED_MULTI_RECV |          \
	 WEFT_CAP_EXACT_DIRECTED_RECV)
#endif

// Deprecated in 2.x, where naming them is a warning.
#define WEFT_MODE_LOCAL_MR (1ULL << 55)
#define WEFT_ORDER_STRICT 0x1FFULL
#define WEFT_ORDER_DATA (1ULL << 16)
#define WEFT_MR_BASIC (1 << 0)
#define WEFT_MR_SCALABLE (1 << 1)

// What to ask fi_getinfo for. Zero and NULL mean "no wish". The modes of the
// domain and of the directions are not here: providers take the endpoint's where
// these are zero.
struct weft_hints {
	uint64_t caps;
	uint64_t mode;
	uint32_t addr_format;
	uint32_t ep_type;
	uint32_t ep_protocol;
	uint32_t ep_protocol_version;
	uint32_t threading;
	uint32_t control_progress;
	uint32_t data_progress;
	uint32_t resource_mgmt;
	uint32_t av_type;
	int32_t mr_mode;
	uint32_t tclass;
	uint32_t pad;
	uint64_t domain_caps;
	uint64_t tx_caps, rx_caps;
	uint64_t tx_order, rx_order;
	uint64_t tx_completion_order, rx_completion_order;
	uint64_t tx_op_flags, rx_op_flags;
	uint64_t tx_size, rx_size;
	uint64_t inject_size, total_buffered_recv;
	uint64_t tx_iov_limit, rx_iov_limit, rma_iov_limit;
	uint64_t max_message;
	uint64_t max_order_raw, max_order_war, max_order_waw;
	uint64_t tag_format;
	uint64_t tx_contexts, rx_contexts;
	uint64_t mr_key_size, cq_data_size;
	uint64_t mr_iov_limit, max_err_data;
	uint64_t ep_cnt, cq_cnt, cntr_cnt, mr_cnt;
	uint64_t max_ep_tx_ctx, max_ep_rx_ctx, max_ep_stx_ctx, max_ep_srx_ctx;
	const char *provider;
	const char *fabric;
	const char *domain;
	const void *source, *destination;
	uint64_t source_size, destination_size;
	const void *auth_key; // of endpoints and of the domain
	uint64_t auth_key_size;
};

// Makes what fi_getinfo is asked with, which fi_freeinfo frees.
int weft_hints_info(const struct weft_hints *hints, struct fi_info **info);
int weft_getinfo(const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info);

// Members that Go cannot name, or that only newer headers have.
struct weft_newer {
	int32_t data_progress;
	uint32_t max_group;
	uint64_t max_auth_keys;
};

void weft_newer(const struct fi_info *info, struct weft_newer *out);

struct weft_pci {
	uint16_t domain;
	uint8_t bus, device, function;
};

struct weft_pci weft_nic_pci(const struct fid_nic *nic);

// Writes libfabric's words for one value of an enumeration or a set of bits.
void weft_value_text(uint64_t value, int type, char *buf, size_t len);

#endif
