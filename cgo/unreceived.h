// What is in a shared receive context of sockets, and nobody has received.
#ifndef WEFT_UNRECEIVED_H
#define WEFT_UNRECEIVED_H

#include "shim.h"

// weft_unreceived_list finds where a shared receive context of sockets has its list of messages
// that wait for a receive. It is for one that was just opened. 0: it is made in another way.
ptrdiff_t weft_unreceived_list(struct fid_ep *shared);

// weft_is_arriving says whether something is arriving in the context for an endpoint that is to be
// closed, and whose connections have ended, or is still to be answered. An answer that a connection
// did not take before it ended is kept for good: it goes to the socket nobody instead, which is
// libfabric's from then on. WEFT_ARRIVES is also that it is not known.
enum weft_arriving { WEFT_ARRIVES_NOT, WEFT_ARRIVES, WEFT_ANSWERS_NOBODY };
enum weft_arriving weft_is_arriving(struct fid_ep *shared, ptrdiff_t list, struct fid_ep *endpoint,
				    int nobody);

// weft_is_unreceived says whether a message that came for such an endpoint, and came whole, is in
// the list. 1 is also that it is not known.
int weft_is_unreceived(struct fid_ep *shared, ptrdiff_t list, struct fid_ep *endpoint);

#endif
