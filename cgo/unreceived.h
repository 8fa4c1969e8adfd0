// What a shared receive context of sockets has of messages.
#ifndef WEFT_UNRECEIVED_H
#define WEFT_UNRECEIVED_H

#include "shim.h"

#include <stddef.h>

// weft_unreceived_list finds it in a context that was just opened. 0: libfabric has made the
// context in another way than in the versions that are known.
ptrdiff_t weft_unreceived_list(struct fid_ep *shared);

enum weft_arriving { WEFT_ARRIVES_NOT, WEFT_ARRIVES, WEFT_ANSWERS_NOBODY };

// weft_is_arriving says whether something is arriving for an endpoint whose connections have ended,
// or is to be answered. An answer that a connection did not take before it ended goes to the socket
// nobody, which is libfabric's from then on (WEFT_ANSWERS_NOBODY).
enum weft_arriving weft_is_arriving(struct fid_ep *shared, ptrdiff_t list, struct fid_ep *endpoint,
				    int nobody);

// weft_refers_to says whether something there may refer to an endpoint whose connections have ended.
int weft_refers_to(struct fid_ep *shared, ptrdiff_t list, struct fid_ep *endpoint);

#endif
