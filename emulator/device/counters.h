/* What the devices of this process did. */
#ifndef COUNTERS_H
#define COUNTERS_H

#include <stddef.h>
#include <stdint.h>

enum counter {
	COUNTER_PACKETS_SENT,
	COUNTER_PACKETS_RECEIVED,
	COUNTER_BYTES_SENT,
	COUNTER_BYTES_RECEIVED,
	COUNTER_REORDERED,  /* held back by WEFT_EFA_REORDER */
	COUNTER_DROPPED,    /* not sent because of WEFT_EFA_DROP or the control socket */
	COUNTER_REFUSED,    /* told "not ready" by WEFT_EFA_RNR or the control socket */
	COUNTER_NOT_READY,  /* told so because no receive was posted */
	COUNTER_REPEATED,   /* sent again because no answer came */
	COUNTER_DUPLICATES, /* received again */
	COUNTER_STRANGE,    /* received and thrown away: not ours, or of another time */
	COUNTER_SENDS,      /* completed, in whatever way */
	COUNTER_READS,
	COUNTER_WRITES,
	COUNTER_RECEIVES,
	COUNTER_ERRORS,    /* of those */
	COUNTER_OVERRUNS,  /* completions lost because the queue was full */
	COUNTER_COUNT
};

void counters_add(enum counter which, uint64_t n);

/* counters_carried adds bytes that one of the devices sent or received to its own,
 * and to those of all. */
void counters_carried(unsigned device, uint64_t sent, uint64_t received);

uint64_t counters_read(enum counter which);

/* What a line of counters takes, with as many devices as there can be. */
enum { COUNTERS_LINE = 4096 };

/* counters_print writes all of them, and the seed, as one line, and where there are
 * several devices the bytes of each, headers included. It returns the
 * length, without the 0 at the end. */
size_t counters_print(char *line, size_t room);

/* counters_report says them where WEFT_EFA_COUNTERS wants it: into a file named
 * after the process if that is a folder, at any time; otherwise to the standard
 * error, at the end. */
void counters_report(int at_end);

#endif
