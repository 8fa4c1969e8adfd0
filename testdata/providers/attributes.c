#include "probe.h"

static void attributes(void)
{
	struct fi_info *i;
	int ret;

	i = look(FI_TAGGED, is_shm() ? NULL : "127.0.0.1", &ret);
	must("fi_getinfo", ret);
	say("%s, %s", i->fabric_attr->prov_name, fi_tostr(&i->addr_format, FI_TYPE_ADDR_FORMAT));
	say(", data %s", fi_tostr(&i->domain_attr->data_progress, FI_TYPE_PROGRESS));
	say(", mr_mode [%s]", fi_tostr(&i->domain_attr->mr_mode, FI_TYPE_MR_MODE));
	say(", cq data %zu, inject %zu, message %zu, queue %zu and %zu, vectors %zu",
	    i->domain_attr->cq_data_size, i->tx_attr->inject_size, i->ep_attr->max_msg_size,
	    i->tx_attr->size, i->rx_attr->size, i->tx_attr->iov_limit);
}

static void structs(void)
{
	say("fi_info %zu, fabric_attr %zu, domain_attr %zu, ep_attr %zu, tx_attr %zu, rx_attr %zu",
	    sizeof(struct fi_info), sizeof(struct fi_fabric_attr), sizeof(struct fi_domain_attr),
	    sizeof(struct fi_ep_attr), sizeof(struct fi_tx_attr), sizeof(struct fi_rx_attr));
	say(", cq_attr %zu, cq_err_entry %zu, mr_attr %zu, av_attr %zu", sizeof(struct fi_cq_attr),
	    sizeof(struct fi_cq_err_entry), sizeof(struct fi_mr_attr), sizeof(struct fi_av_attr));
}

const struct question attribute_questions[] = {
	{"attributes", attributes},
	{"structs", structs},
	{NULL, NULL},
};
