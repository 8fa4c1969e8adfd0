//go:build linux

#include "info.h"
#include "shminfo.h"

#include <stdlib.h>
#include <string.h>

static char *copy(const char *s)
{
	return s && *s ? strdup(s) : NULL;
}

// A copy that fi_freeinfo frees; NULL where there is nothing to copy or no
// memory, which the caller tells apart.
static void *copy_bytes(const void *p, uint64_t size)
{
	void *to = p && size ? malloc(size) : NULL;

	return to ? memcpy(to, p, size) : NULL;
}

static int fill(const struct weft_hints *h, struct fi_info *hints)
{
	struct fi_tx_attr *tx = hints->tx_attr;
	struct fi_rx_attr *rx = hints->rx_attr;
	struct fi_ep_attr *ep = hints->ep_attr;
	struct fi_domain_attr *domain = hints->domain_attr;

	hints->caps = h->caps;
	hints->mode = h->mode;
	hints->addr_format = h->addr_format;
	ep->type = h->ep_type;
	ep->protocol = h->ep_protocol;
	ep->protocol_version = h->ep_protocol_version;
	ep->max_msg_size = h->max_message;
	ep->max_order_raw_size = h->max_order_raw;
	ep->max_order_war_size = h->max_order_war;
	ep->max_order_waw_size = h->max_order_waw;
	ep->mem_tag_format = h->tag_format;
	ep->tx_ctx_cnt = h->tx_contexts;
	ep->rx_ctx_cnt = h->rx_contexts;
	domain->threading = h->threading;
	domain->control_progress = h->control_progress;
	domain->data_progress = h->data_progress;
	domain->resource_mgmt = h->resource_mgmt;
	domain->av_type = h->av_type;
	domain->mr_mode = h->mr_mode;
	domain->mr_key_size = h->mr_key_size;
	domain->cq_data_size = h->cq_data_size;
	domain->mr_iov_limit = h->mr_iov_limit;
	domain->max_err_data = h->max_err_data;
	domain->ep_cnt = h->ep_cnt;
	domain->cq_cnt = h->cq_cnt;
	domain->cntr_cnt = h->cntr_cnt;
	domain->mr_cnt = h->mr_cnt;
	domain->max_ep_tx_ctx = h->max_ep_tx_ctx;
	domain->max_ep_rx_ctx = h->max_ep_rx_ctx;
	domain->max_ep_stx_ctx = h->max_ep_stx_ctx;
	domain->max_ep_srx_ctx = h->max_ep_srx_ctx;
	domain->caps = h->domain_caps;
	domain->tclass = h->tclass;
	tx->caps = h->tx_caps;
	tx->msg_order = h->tx_order;
	tx->comp_order = h->tx_completion_order;
	tx->op_flags = h->tx_op_flags;
	tx->size = h->tx_size;
	tx->inject_size = h->inject_size;
	tx->iov_limit = h->tx_iov_limit;
	tx->rma_iov_limit = h->rma_iov_limit;
	tx->tclass = h->tclass;
	rx->caps = h->rx_caps;
	rx->msg_order = h->rx_order;
	rx->comp_order = h->rx_completion_order;
	rx->op_flags = h->rx_op_flags;
	rx->size = h->rx_size;
	rx->iov_limit = h->rx_iov_limit;
	rx->total_buffered_recv = h->total_buffered_recv;
	hints->fabric_attr->prov_name = copy(h->provider);
	hints->fabric_attr->name = copy(h->fabric);
	domain->name = copy(h->domain);
	if (h->source_size) {
		hints->src_addr = copy_bytes(h->source, h->source_size);
		hints->src_addrlen = h->source_size;
	}
	if (h->destination_size) {
		hints->dest_addr = copy_bytes(h->destination, h->destination_size);
		hints->dest_addrlen = h->destination_size;
	}
	if (h->auth_key_size) {
		ep->auth_key = copy_bytes(h->auth_key, h->auth_key_size);
		ep->auth_key_size = h->auth_key_size;
		domain->auth_key = copy_bytes(h->auth_key, h->auth_key_size);
		domain->auth_key_size = h->auth_key_size;
	}
	if ((h->source_size && !hints->src_addr) ||
	    (h->destination_size && !hints->dest_addr) ||
	    (h->auth_key_size && (!ep->auth_key || !domain->auth_key)))
		return -FI_ENOMEM;
	return 0;
}

int weft_hints_info(const struct weft_hints *h, struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	ret = fill(h, hints);
	if (ret)
		fi_freeinfo(hints);
	else
		*info = hints;
	return ret;
}

int weft_getinfo(const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info)
{
	int ret;

	weft_save_handlers();
	weft_keep_shm_info();
	ret = fi_getinfo((uint32_t)weft_highest_version(), node, service, flags,
			 hints, info);
	weft_restore_shm_info(ret ? NULL : *info);
	weft_restore_handlers();
	return ret;
}

void weft_newer(const struct fi_info *info, struct weft_newer *out)
{
	memset(out, 0, sizeof *out);
	// A member of an anonymous union from 2.x on, which Go cannot name.
	out->data_progress = (int32_t)info->domain_attr->data_progress;
#if FI_VERSION_GE(WEFT_HEADERS, FI_VERSION(2, 0))
	out->max_auth_keys = info->domain_attr->max_ep_auth_key;
	out->max_group = info->domain_attr->max_group_id;
#endif
}

struct weft_pci weft_nic_pci(const struct fid_nic *nic)
{
	const struct fi_pci_attr *pci = &nic->bus_attr->attr.pci;

	return (struct weft_pci){ pci->domain_id, pci->bus_id, pci->device_id,
				  pci->function_id };
}

void weft_value_text(uint64_t value, int type, char *buf, size_t len)
{
	uint32_t word = (uint32_t)value;
	const void *data = &word;

	switch (type) {
	case FI_TYPE_CAPS:
	case FI_TYPE_OP_FLAGS:
	case FI_TYPE_MSG_ORDER:
	case FI_TYPE_MODE:
	case FI_TYPE_CQ_EVENT_FLAGS:
		data = &value;
		break;
	default:
		break;
	}
	fi_tostr_r(buf, len, data, (enum fi_type)type);
}
