/* Address handles. Their numbers belong to the device: one for each address,
 * however many handles there are of it, and a receiver names the sender by it. */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdint.h>

#include "device.h"

enum { ADDRESS_UNKNOWN = 0xffff };

struct address {
	struct ibv_ah verbs;
	struct in_addr ip;
	uint16_t number;
};

/* address_number is the number of the address on the device, ADDRESS_UNKNOWN if
 * there is no handle of it. Under the engine's lock. */
uint16_t address_number(const struct device *device, struct in_addr ip);

#endif
