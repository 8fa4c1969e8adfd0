/* What goes over UDP between two emulated devices. A packet is this header,
 * little-endian and without holes, and a payload. */
#ifndef WIRE_H
#define WIRE_H

#include <stdint.h>

enum {
	WIRE_MAGIC = 0x41464557, /* "WEFA" */
	WIRE_VERSION = 1,
	/* The most that a packet of a read or a write carries. It fits into a UDP
	 * datagram of loopback; smaller networks fragment it. */
	WIRE_CHUNK = 32 * 1024,
	/* The longest message, as EFA devices say it. */
	WIRE_MESSAGE = 8928,
	/* Sequences that a sender has open at most, from its oldest one. */
	WIRE_WINDOW = 1024,
};

enum wire_kind {
	/* From the side that works for a posted send. Each is answered. */
	WIRE_SEND = 1,
	WIRE_WRITE,
	WIRE_NOTICE, /* the immediate of a write, after all of its data */
	WIRE_READ,
	/* Answers. */
	WIRE_ACK,
	WIRE_DATA, /* what was read */
	/* Neither answered nor repeated. */
	WIRE_DATAGRAM,
};

enum wire_flag {
	WIRE_IMMEDIATE = 1, /* immediate has a value */
	WIRE_LAST_TRY = 2,  /* the receiver that is not ready shall decide so */
};

/* In an acknowledgement: not ready, try again. Other values of status are the
 * device's, as in status.h. */
enum { WIRE_NOT_READY = 0xff };

struct wire_header {
	uint32_t magic;
	uint8_t version;
	uint8_t kind;
	uint8_t flags;
	uint8_t status;
	uint64_t incarnation; /* of the queue pair that sends this packet */
	uint64_t answered;    /* in answers: of the queue pair that asked */
	uint32_t sequence;
	uint32_t floor; /* all sequences before this one are decided and known */
	uint32_t qkey;
	uint32_t immediate; /* as the application gave it, in its byte order */
	uint64_t address;   /* of the remote memory */
	uint32_t key;
	uint32_t length; /* of the payload, or of what is to be read */
	uint32_t total;  /* in a notice: of the whole write */
	uint32_t reserved;
};

_Static_assert(sizeof(struct wire_header) == 64, "the header has no holes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the header is little-endian");

#endif
