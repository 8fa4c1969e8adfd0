#ifndef WEFT_PAUSE_H
#define WEFT_PAUSE_H

#include <stdint.h>

// A rest between two looks: the shortest, which is the one to begin with, and the
// longest.
#define WEFT_REST_NS 70
#define WEFT_REST_MOST_NS 300

// Rests between two looks at a queue that had nothing, for about so many
// nanoseconds, at most WEFT_REST_MOST_NS.
void weft_rest(uint32_t ns);

// Nanoseconds of the monotonic clock.
int64_t weft_now(void);

// Nanoseconds from start to now, without what the clock itself takes, which
// differs by a factor of ten between machines.
int64_t weft_since(int64_t start);

#endif
