// Event queues: what happens to endpoints beside their operations.
#ifndef WEFT_EVENTS_H
#define WEFT_EVENTS_H

#include "shim.h"

// The most bytes of a peer's that an event carries; providers have less.
#define WEFT_EVENT_DATA 4096

// One event, or error, of an event queue.
struct weft_event {
	uint32_t event;
	int32_t err; // 0, or a positive code: the event is an error
	int32_t prov_errno;
	uint32_t length;      // of bytes
	uintptr_t object;     // what the event is about
	uintptr_t context;
	uint64_t data;
	uintptr_t info;       // of a connection request: the reader's to free
	char text[128];
	uint8_t bytes[WEFT_EVENT_DATA]; // what the peer said
};

int weft_eq_open(struct fid_fabric *fabric, uint64_t size, int wait,
		 uint64_t flags, struct fid_eq **eq);
// 1: an event was read. 0: there is none. Negative: reading failed.
int weft_eq_read(struct fid_eq *eq, struct weft_event *event);
// 1: there may be something to read. 0: time is up. Negative: cannot wait.
int weft_eq_wait(struct fid_eq *eq, int timeout_ms);
static inline struct fi_info *weft_event_info(const struct weft_event *event)
{
	return (struct fi_info *)event->info;
}
int weft_eq_notify(struct fid_eq *eq, uint64_t data);

#endif
