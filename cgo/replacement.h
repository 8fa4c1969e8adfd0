// Requests of peers that have started again.
#ifndef WEFT_REPLACEMENT_H
#define WEFT_REPLACEMENT_H

#include "mapped.h"
#include "segments.h"

#include <arpa/inet.h>

union weft_host {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

// What ofi_rxm says when it connects (union rxm_cm_data).
struct weft_request {
	uint8_t version, endianness, packets, operations;
	uint16_t port; // where the peer listens
	uint8_t flow_control, none;
	uint32_t most_at_once, buffers;
	uint64_t number; // the process in the upper half
};

// weft_asks_again says whether a request is of the peer of a connection that is there, and of another process
// than that was: ofi_rxm looks for the address in what it has of the peer, and closes the connection. While
// it connects itself, one of two requests is refused, and no connection is closed that brings something.
int weft_asks_again(const struct weft_looks *l, const struct weft_bringing *b,
		    const union weft_host *from, const struct weft_request *r);

#endif
