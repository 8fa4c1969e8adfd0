// C memory of weft's own that is counted, by what it is for.
#ifndef WEFT_COUNTED_H
#define WEFT_COUNTED_H

#include <stddef.h>
#include <stdint.h>

// Laid out like the last purposes in purpose.go.
enum weft_purpose {
	WEFT_FOR_EVENTS,      // event queues that keep few errors
	WEFT_FOR_ACCESSES,    // what peers may reach, and ask for
	WEFT_FOR_HOST,	      // operations within a host
	WEFT_FOR_CONNECTIONS, // what ofi_rxm has, registers and gets in parts, where peers of ofi_rxd are
	WEFT_PURPOSES
};

// weft_take returns memory, zeroed, or NULL. It is given back by weft_give, for the same
// purpose.
void *weft_take(enum weft_purpose purpose, size_t size);
void weft_give(enum weft_purpose purpose, void *memory);
// weft_keep has it counted no longer: it is freed by free, or never.
void weft_keep(enum weft_purpose purpose, void *memory);

// weft_taken is how many bytes were taken for a purpose, and not given back.
int64_t weft_taken(enum weft_purpose purpose);

#endif
