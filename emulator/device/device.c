#include "device.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "address.h"
#include "completion.h"
#include "export.h"
#include "post.h"
#include "queue_pair.h"
#include "settings.h"
#include "sysfs.h"

#undef ibv_get_device_list
#undef ibv_query_port

static struct device devices[SETTINGS_DEVICES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void name_devices(void)
{
	const struct settings *set = settings();

	for (unsigned i = 0; set->valid && i < set->devices; i++) {
		struct device *device = &devices[i];

		device->index = i;
		device->address = set->addresses[i];
		device->verbs.node_type = IBV_NODE_UNSPECIFIED;
		device->verbs.transport_type = IBV_TRANSPORT_UNSPECIFIED;
		snprintf(device->verbs.name, sizeof(device->verbs.name), "rdmap%us0", i);
		snprintf(device->verbs.dev_name, sizeof(device->verbs.dev_name), "uverbs%u", i);
		sysfs_paths(i, device->verbs.name, device->verbs.dev_path, device->verbs.ibdev_path, IBV_SYSFS_PATH_MAX);
	}
}

EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
	const struct settings *set = settings();
	struct ibv_device **list;
	unsigned n = set->valid ? set->devices : 0;

	pthread_once(&once, name_devices);
	list = calloc(n + 1, sizeof(*list));
	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	for (unsigned i = 0; i < n; i++)
		list[i] = &devices[i].verbs;
	if (n && !sysfs_make(n)) {
		fprintf(stderr, "weft-efa: cannot make the folder %s: %s\n", sysfs_root(), strerror(errno));
		free(list);
		return NULL;
	}
	if (count)
		*count = (int)n;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	if (list && list[0])
		sysfs_done();
	free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	struct device *of = (struct device *)device;

	return htobe64(0x0200000000000000ull | ntohl(of->address.s_addr));
}

EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return (int)((struct device *)device)->index;
}

struct context *context_of(struct ibv_context *context)
{
	return (struct context *)((char *)context - offsetof(struct context, verbs.context));
}

struct device *device_of(struct ibv_context *context)
{
	return context_of(context)->device;
}

union ibv_gid gid_of(struct in_addr address)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	memcpy(gid.raw + 12, &address, sizeof(address));
	return gid;
}

bool gid_address(const union ibv_gid *gid, struct in_addr *address)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(address, gid->raw + 12, sizeof(*address));
	return !memcmp(gid->raw, prefix, sizeof(prefix)) && address->s_addr != INADDR_ANY;
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	memset(attr, 0, sizeof(*attr));
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "0.0.0.0");
	attr->node_guid = attr->sys_image_guid = ibv_get_device_guid(context->device);
	attr->max_mr_size = 1ull << 40;
	attr->page_size_cap = 0xfffff000;
	attr->vendor_id = 0x1d0f;
	attr->vendor_part_id = 0xefa2;
	attr->hw_ver = 0xefa2;
	/* A queue pair's number is its UDP port. libfabric's table of queue pairs
	 * has this size, and is indexed by the number. */
	attr->max_qp = 65535;
	attr->max_qp_wr = DEVICE_SEND_WORK;
	attr->max_sge = DEVICE_SEND_SGE;
	attr->max_sge_rd = 1;
	attr->max_cq = 8192;
	attr->max_cqe = DEVICE_COMPLETIONS;
	attr->max_mr = 65535;
	attr->max_pd = 8192;
	attr->max_ah = (int)settings()->handles;
	attr->max_pkeys = 1;
	attr->phys_port_cnt = 1;
	return 0;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr full = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = 1,
		.max_msg_sz = WIRE_MESSAGE,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = 2, /* 4x */
		.active_speed = 32, /* EDR: 100 Gb/s */
		.phys_state = 5, /* link up */
		.link_layer = IBV_LINK_LAYER_UNSPECIFIED,
	};

	(void)context;
	if (port != 1)
		return EINVAL;
	memset(attr, 0, size);
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

/* For programs built before verbs contexts were extended. */
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	if (input && input->comp_mask)
		return EINVAL;
	if (size < sizeof(attr->orig_attr))
		return EINVAL;
	memset(attr, 0, size);
	return ibv_query_device(context, &attr->orig_attr);
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	if (port != 1 || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*gid = gid_of(device_of(context)->address);
	return 0;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	if (port != 1 || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(0xffff);
	return 0;
}

/* before_1_18 says whether the caller is a libfabric before 1.18. */
static bool before_1_18(void *caller)
{
	uint32_t (*version)(void) = NULL;
	void *handle, *symbol = NULL;
	Dl_info info;

	if (!dladdr(caller, &info) || !info.dli_fname)
		return false;
	handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return false;
	symbol = dlsym(handle, "fi_version");
	memcpy(&version, &symbol, sizeof(symbol));
	dlclose(handle);
	return version && version() < (1u << 16 | 18);
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct context *opened = calloc(1, sizeof(*opened));
	struct ibv_context *context;

	if (!opened) {
		errno = ENOMEM;
		return NULL;
	}
	opened->device = (struct device *)device;
	opened->reads_are_sends = before_1_18(__builtin_return_address(0));
	opened->verbs.sz = sizeof(opened->verbs);
	opened->verbs.query_port = query_port;
	opened->verbs.query_device_ex = query_device_ex;
	opened->verbs.create_cq_ex = completion_create_ex;
	opened->verbs.create_qp_ex = queue_pair_create_ex;
	context = &opened->verbs.context;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->device = device;
	context->ops.poll_cq = completion_poll;
	context->ops.req_notify_cq = completion_arm;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_receive;
	context->num_comp_vectors = 1;
	context->cmd_fd = -1;
	/* Asynchronous events never come, but a program may wait for them. */
	context->async_fd = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&context->mutex, NULL);
	return context;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct context *opened = context_of(context);

	if (context->async_fd >= 0)
		close(context->async_fd);
	pthread_mutex_destroy(&context->mutex);
	free(opened);
	return 0;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct domain *domain = calloc(1, sizeof(*domain));

	if (!domain) {
		errno = ENOMEM;
		return NULL;
	}
	domain->verbs.context = context;
	return &domain->verbs;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct domain *domain = (struct domain *)pd;

	if (__atomic_load_n(&domain->users, __ATOMIC_SEQ_CST))
		return EBUSY;
	free(domain);
	return 0;
}
