// Messages that ofi_rxm gets in segments.
#ifndef WEFT_SEGMENTS_H
#define WEFT_SEGMENTS_H

#include "shim.h"

// weft_bringing is what is known of a connection that may bring segments. It begins as zeros.
struct weft_bringing {
	struct fid *own; // the provider's
	const struct fid_ep *given; // what ofi_rxm has for it
	struct fid_cq *queue;
	struct fid_eq *events;
	struct fid_ep *shared; // where buffers are posted, or NULL: to the connection
	uint64_t number;       // by which the peer calls it
	// Its end, or a request for another in its place, is there, and not said yet; since then, its queue
	// was empty; no more is to come by it; the request has been read.
	int withheld, drained, ending, asked;
	size_t read; // how many since its end is withheld
	struct weft_bringing *next, **before;
};

// weft_may_bring says that a connection, of which everything is known, may bring segments, until
// weft_brings_no_more.
void weft_may_bring(struct weft_bringing *b);
void weft_brings_no_more(struct weft_bringing *b);

typedef ssize_t weft_read_queue(struct fid_cq *cq, void *buf, size_t count);
typedef ssize_t weft_read_events(struct fid_eq *eq, uint32_t *event, void *buf, size_t len,
				 uint64_t flags);

// weft_read_segments reads a queue of ofi_rxm's by read, and of a message whose connection has
// ended a last segment that says so. to_packet is from the context of a buffer to its beginning.
ssize_t weft_read_segments(struct fid_cq *cq, struct fi_cq_data_entry *entries, size_t count,
			   weft_read_queue *read, ptrdiff_t to_packet);

// weft_read_ends reads events by read, and none of an end before such a segment was read, nor a
// request that has ofi_rxm close the connection before.
ssize_t weft_read_ends(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags,
		       weft_read_events *read);

// weft_spares is for a buffer that ofi_rxm is about to post, and says whether it is kept for such a
// segment.
int weft_spares(const struct fid_ep *ep, void *buf, size_t length, void *context);

// weft_amid_segments says whether of any message some segments have come, and not all.
int weft_amid_segments(void);

// weft_end_segments is for an endpoint that is to be closed. Messages of which not all segments have
// come end with the next reads of its queue, as if their connections had, and no others begin. It
// returns how many there are.
int weft_end_segments(struct fid_ep *ep);

// weft_segments_are_seen says whether queues are read by weft_read_segments.
int weft_segments_are_seen(void);

// weft_cut is what such a message has for an immediate.
uint64_t weft_cut(void);

// weft_post_for_all posts a buffer as the provider does, and weft_watch_events has its events read
// by weft_read_ends.
void weft_post_for_all(struct fid_ep *shared, void *buf, size_t length, void *context);
void weft_watch_events(struct fid_eq *events);

#endif
