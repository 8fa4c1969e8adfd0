// What peers may reach of a domain of efa.
#ifndef WEFT_REACH_H
#define WEFT_REACH_H

#include "shim.h"

// struct weft_reach has the regions of one domain that peers may reach.
struct weft_reach;

// weft_reach_new returns one without regions, and NULL if there is no memory.
struct weft_reach *weft_reach_new(void);

// weft_reach_free is for when the domain is closed.
void weft_reach_free(struct weft_reach *r);

// weft_reach_add says that peers may reach a region, with its rights of access. 0, or
// -FI_ENOMEM.
int weft_reach_add(struct weft_reach *r, uint64_t key, uint64_t base, uint64_t length,
		   uint64_t access);

// weft_begun are what may go on that libfabric has begun in a region at times: accesses in packets
// that do not say of what they are, and atomic operations, which wait for messages that are late.
enum weft_begun { WEFT_BEGUN_LONG = 1, WEFT_BEGUN_ATOMIC = 2 };

// weft_reach_remove says that they may not any more. On return, libfabric is not amid the
// beginning of an access to it, and begins none. It returns a set of weft_begun. The region is
// as it was added.
int weft_reach_remove(struct weft_reach *r, uint64_t key, uint64_t base, uint64_t length,
		      uint64_t access);

// weft_target is where an access goes to, as packets have it.
struct weft_target {
	uint64_t address, length, key;
};

// weft_reach_begin says whether peers may reach all targets, and notes what begins, of weft_begun, or
// 0. If they may, no region is removed until weft_reach_begun.
int weft_reach_begin(struct weft_reach *r, const char *targets, uint32_t count,
		     uint64_t access, int begins);
void weft_reach_begun(struct weft_reach *r);

// weft_reach_guard has an endpoint of the domain, or a queue, whichever has the device's
// queue of completions, refuse what peers may not reach, in place of libfabric, which ends
// the process. It is for before the endpoint is enabled, and lasts until the object is
// closed by weft_reach_close. WEFT_NO_QUEUE: it has none, or one that is guarded already.
// Otherwise it is what the device can do.
enum weft_guarded { WEFT_NO_QUEUE, WEFT_READS, WEFT_READS_NOT };
enum weft_guarded weft_reach_guard(struct weft_reach *r, struct fid *object);

// weft_reach_close is fi_close of an endpoint or a queue, or weft_inner_close of an endpoint, which
// may have nothing to do any more with others of the process (weft_within_host_closing).
enum weft_how { WEFT_CLOSE, WEFT_CLOSE_INNER, WEFT_CLOSE_APART };
int weft_reach_close(struct fid *object, enum weft_how how);

#endif
