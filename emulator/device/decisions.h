/* What a receiver decided about each sequence of one sender, kept until the
 * sender says that it knows. A packet that comes twice gets the same answer
 * twice and has its effect once. */
#ifndef DECISIONS_H
#define DECISIONS_H

#include <stdint.h>

#include "wire.h"

struct decisions {
	uint32_t floor; /* the sender knows all before this sequence */
	uint8_t of[WIRE_WINDOW]; /* status + 1; 0 is undecided */
};

enum {
	DECISION_NONE = -1,    /* not decided yet */
	DECISION_KNOWN = -2,   /* the sender has the answer already */
	DECISION_OUTSIDE = -3, /* beyond the window: no sender that keeps the rules */
};

/* decisions_start begins with a sender whose floor this is. */
void decisions_start(struct decisions *all, uint32_t floor);

/* decisions_advance forgets what the sender knows. A floor from a packet that
 * was overtaken changes nothing. */
void decisions_advance(struct decisions *all, uint32_t floor);

/* decisions_look returns the status decided for the sequence, or one of the
 * values above. */
int decisions_look(const struct decisions *all, uint32_t sequence);

/* decisions_make remembers a decision; the sequence must be undecided. */
void decisions_make(struct decisions *all, uint32_t sequence, uint8_t status);

#endif
