// Messages that ofi_rxm fetches from their senders when somebody receives them.
#ifndef WEFT_FETCH_H
#define WEFT_FETCH_H

#include "shim.h"

// How many messages the calls of this thread would have fetched from senders that are
// gone, since it was set to 0.
extern _Thread_local uint32_t weft_lost;

// weft_mark_messages has a domain of ofi_rxm, of which nothing has been opened yet,
// number connections, and mark messages with the last number. It returns how many domains
// there are below it; 0: none was found, and nothing is marked.
// What is registered in those is kept, too.
int weft_mark_messages(struct fid_domain *domain);
// weft_close_registrations closes what such a domain, of which everything else is closed, has
// registered in those below it. It returns how many there were, or an error.
int weft_close_registrations(struct fid_domain *domain);
// weft_no_place_for_marks says that buffers have no place for a mark, and returns 0.
int weft_no_place_for_marks(void);

// So many bytes are before all messages.
#define WEFT_BEFORE_MESSAGES 64
// weft_posted_length is how long the last buffer was that was posted: in 1.x, where the rest of a
// message is asked for when it comes, never more than WEFT_BEFORE_MESSAGES.
extern size_t weft_posted_length;
// weft_learn is called for each buffer that is posted, and learns where it is from the context,
// which it is the end of.
void weft_learn(const char *buf, size_t length, const char *context);

// weft_came_by says whether a message came by the connection, as far as there are marks.
int weft_came_by(const struct fid_ep *connection, const void *message);

// weft_guard_fetches has an enabled endpoint of ofi_rxm count messages whose sender is
// gone in weft_lost, where libfabric ends the process, or asks whom the sender's place
// was given to. 0: what that needs was not found, and nothing was changed.
int weft_guard_fetches(struct fid_ep *ep);

// weft_send_unsegmented has an enabled endpoint of ofi_rxm, which sends at once what is
// no longer than eager_limit, have everything else fetched, and nothing sent in segments,
// as it does by default up to eight times as much. 0: that was not found, and nothing was changed.
int weft_send_unsegmented(struct fid_ep *ep, uint64_t eager_limit);

#endif
