#include "address.h"

#include <errno.h>
#include <stdlib.h>

#include "engine.h"
#include "export.h"
#include "settings.h"

enum { BUCKETS = 256 };

struct number {
	struct number *next;
	struct in_addr ip;
	uint16_t number;
	unsigned handles;
};

struct handles {
	struct number *buckets[BUCKETS];
	unsigned count;
	uint16_t *given_back;
	unsigned free, used;
};

static unsigned bucket(struct in_addr ip)
{
	return (ntohl(ip.s_addr) * 2654435761u) >> 24;
}

static struct number *find(const struct device *device, struct in_addr ip)
{
	struct number *entry = device->handles ? device->handles->buckets[bucket(ip)] : NULL;

	while (entry && entry->ip.s_addr != ip.s_addr)
		entry = entry->next;
	return entry;
}

uint16_t address_number(const struct device *device, struct in_addr ip)
{
	const struct number *entry = find(device, ip);

	return entry ? entry->number : ADDRESS_UNKNOWN;
}

static struct number *take(struct device *device, struct in_addr ip)
{
	struct number *entry = find(device, ip);
	struct handles *handles = device->handles;

	if (!handles) {
		handles = calloc(1, sizeof(*handles));
		if (!handles)
			return NULL;
		handles->given_back = calloc(settings()->handles, sizeof(*handles->given_back));
		if (!handles->given_back) {
			free(handles);
			return NULL;
		}
		device->handles = handles;
	}
	if (handles->count == settings()->handles)
		return NULL;
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return NULL;
		entry->ip = ip;
		entry->number = handles->free ? handles->given_back[--handles->free] : (uint16_t)handles->used++;
		entry->next = handles->buckets[bucket(ip)];
		handles->buckets[bucket(ip)] = entry;
	}
	handles->count++;
	entry->handles++;
	return entry;
}

static void give_back(struct device *device, struct in_addr ip)
{
	struct handles *handles = device->handles;
	struct number **at = &handles->buckets[bucket(ip)], *entry;

	while ((*at)->ip.s_addr != ip.s_addr)
		at = &(*at)->next;
	entry = *at;
	if (!--entry->handles) {
		handles->given_back[handles->free++] = entry->number;
		*at = entry->next;
		free(entry);
	}
	if (!--handles->count) {
		free(handles->given_back);
		free(handles);
		device->handles = NULL;
	}
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct address *address;
	struct number *number;
	struct in_addr ip;

	if (!attr->is_global || attr->port_num > 1 || !gid_address(&attr->grh.dgid, &ip)) {
		errno = EINVAL;
		return NULL;
	}
	address = calloc(1, sizeof(*address));
	if (!address) {
		errno = ENOMEM;
		return NULL;
	}
	engine_lock();
	number = take(device_of(pd->context), ip);
	if (number)
		address->number = number->number;
	engine_unlock();
	if (!number) {
		free(address);
		errno = ENOMEM;
		return NULL;
	}
	address->verbs.context = pd->context;
	address->verbs.pd = pd;
	address->verbs.handle = address->number;
	address->ip = ip;
	__atomic_fetch_add(&((struct domain *)pd)->users, 1, __ATOMIC_SEQ_CST);
	return &address->verbs;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	struct address *address = (struct address *)ah;

	engine_lock();
	give_back(device_of(ah->context), address->ip);
	engine_unlock();
	__atomic_fetch_sub(&((struct domain *)ah->pd)->users, 1, __ATOMIC_SEQ_CST);
	free(address);
	return 0;
}
