//go:build linux

#define _GNU_SOURCE
#include "segments.h"
#include "counted.h"
#include "fetch.h"
#include "replacement.h"

#include <malloc.h>
#include <pthread.h>
#include <string.h>

// ofi_rxm of 2.x ends the process when a connection ends that has brought some segments of a
// message, and not all: it takes what it has of the message for the receive. So before it hears of
// the end, it gets a last segment, without text: the message is cut off, for whoever receives it.
// That comes in a buffer of ofi_rxm's, which is kept when the first segment is there: for each
// buffer that has come, it posts another one. The segments of a message follow each other, so that
// a connection has one message of which not all have come.

// How a packet begins: with what is of the transport (struct ofi_ctrl_hdr), and what is of the
// message (struct ofi_op_hdr).
struct head {
	uint8_t version, type;
	uint16_t segment_length;
	uint32_t segment_number;
	uint64_t connection; // by the receiver's number
	uint64_t message;
	uint64_t place; // its lowest two bits
	uint8_t of_message[8];
	uint64_t size, data, tag;
};

#define IN_SEGMENTS 1 // of the types
#define FIRST UINT64_C(1)
#define LAST UINT64_C(3)
#define PLACES UINT64_C(3)

// What weft_bringing.ending may be beside 0: its endpoint is being closed; another connection is to
// have its place; ofi_rxm has refused that other one, and what comes with the next message counts again.
#define CLOSING 1
#define REPLACED 2
#define RESUMES 3

// What was in a queue when an end came has been read after so many, if it is never empty.
#define MOST_WAITING 65536

// message is one of which not all segments have come.
struct message {
	struct weft_bringing *by;
	struct head head; // of the first
	uint64_t flags;	  // of its completion
	void *spare;	  // the context of a buffer
	void *buf;
	size_t length;
	int ended;
	struct message *next;
};

static struct weft_bringing *connections;
// The one that has brought the last segment, or NULL; and whether there was ever one.
static struct weft_bringing *recent;
static int were_some;
static struct message *messages;
// How many there are, and how many connections of which an end is withheld, or whose endpoint is
// closed: mostly none, and then nobody looks.
static int count_of_messages, count_of_ends;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t weft_cut(void)
{
	return (uintptr_t)&connections * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

int weft_amid_segments(void)
{
	return __atomic_load_n(&count_of_messages, __ATOMIC_ACQUIRE) > 0;
}

static int are_ends(void)
{
	return __atomic_load_n(&count_of_ends, __ATOMIC_ACQUIRE) > 0;
}

// post posts a buffer as libfabric does.
static void post(const struct weft_bringing *b, void *buf, size_t length, void *context)
{
	if (b->shared)
		weft_post_for_all(b->shared, buf, length, context);
	else
		fi_recv((struct fid_ep *)b->own, buf, length, NULL, FI_ADDR_UNSPEC, context);
}

// take_out forgets a message, whose buffer is posted if it was not used.
static void take_out(struct message **place)
{
	struct message *m = *place;

	*place = m->next;
	__atomic_sub_fetch(&count_of_messages, 1, __ATOMIC_RELEASE);
	if (m->spare)
		post(m->by, m->buf, m->length, m->spare);
	weft_give(WEFT_FOR_CONNECTIONS, m);
}

// ends_no_more forgets that a connection was to end.
static void ends_no_more(struct weft_bringing *b)
{
	if (b->withheld || b->ending)
		__atomic_sub_fetch(&count_of_ends, 1, __ATOMIC_RELEASE);
	b->withheld = b->drained = b->ending = b->asked = 0;
	b->read = 0;
}

void weft_may_bring(struct weft_bringing *b)
{
	if (!weft_segments_are_seen())
		return;
	pthread_mutex_lock(&lock);
	b->next = connections;
	b->before = &connections;
	if (b->next)
		b->next->before = &b->next;
	connections = b;
	were_some = 1;
	pthread_mutex_unlock(&lock);
	weft_watch_events(b->events);
}

void weft_brings_no_more(struct weft_bringing *b)
{
	struct message **place = &messages;

	pthread_mutex_lock(&lock);
	while (*place && (*place)->by != b)
		place = &(*place)->next;
	if (*place)
		take_out(place);
	if (recent == b)
		recent = NULL;
	ends_no_more(b);
	if (b->before) {
		*b->before = b->next;
		if (b->next)
			b->next->before = b->before;
		b->before = NULL;
	}
	pthread_mutex_unlock(&lock);
}

// brings says whether a packet has come by a connection. What the peer was told has the process
// in front, in the upper half.
static int brings(const struct weft_bringing *b, const struct fid_cq *cq, const struct head *h)
{
	return b->queue == cq && (uint32_t)b->number == (uint32_t)h->connection;
}

// begin keeps that the first segment of a message is there.
static void begin(struct weft_bringing *b, const struct head *h, uint64_t flags)
{
	struct message *m = weft_take(WEFT_FOR_CONNECTIONS, sizeof *m);

	if (!m)
		return;
	m->by = b;
	m->head = *h;
	m->flags = flags;
	m->next = messages;
	messages = m;
	__atomic_add_fetch(&count_of_messages, 1, __ATOMIC_RELEASE);
}

// note is for a segment that is about to be read, and says whether it is not: what comes by a
// connection that is closed or replaced, or that of an endpoint that is being closed, behind the last
// segments that it was given. The buffer is for other connections then, if there are any, but in the
// last case.
static int note(const struct fid_cq *cq, struct head *h, uint64_t flags, void *context)
{
	const uint64_t at = h->place & PLACES;
	struct weft_bringing *b;
	struct message **place = &messages;
	int late;

	pthread_mutex_lock(&lock);
	b = recent;
	if (!b || !brings(b, cq, h))
		for (b = connections; b && !brings(b, cq, h);)
			b = b->next;
	recent = b;
	if (b && b->ending == RESUMES && at == FIRST)
		ends_no_more(b);
	late = b ? b->ending : were_some;
	if (!late && (at == FIRST || at == LAST)) {
		while (*place && (*place)->by != b)
			place = &(*place)->next;
		if (*place)
			take_out(place);
		if (b && at == FIRST)
			begin(b, h, flags);
	}
	if (late && !b)
		for (b = connections; b && b->queue != cq;)
			b = b->next;
	if (late && b && b->shared && b->ending != CLOSING)
		weft_post_for_all(b->shared, h,
				  __atomic_load_n(&weft_posted_length, __ATOMIC_RELAXED), context);
	pthread_mutex_unlock(&lock);
	return late;
}

// last reads the last segment of a message that has ended, and says whether there was one.
static int last(const struct fid_cq *cq, struct fi_cq_data_entry *e)
{
	struct message **place = &messages, *m;
	struct head h;

	pthread_mutex_lock(&lock);
	while (*place && !((*place)->by->queue == cq && (*place)->ended && (*place)->spare))
		place = &(*place)->next;
	m = *place;
	if (m) {
		h = m->head;
		h.segment_length = 0;
		h.place = (h.place & ~PLACES) | LAST;
		h.data = weft_cut();
		memcpy(m->buf, &h, sizeof h);
		memset(e, 0, sizeof *e);
		e->op_context = m->spare;
		e->flags = m->flags;
		e->len = sizeof h;
		m->spare = NULL;
		take_out(place);
	}
	pthread_mutex_unlock(&lock);
	return m != NULL;
}

// replaced returns the connection that ofi_rxm closes for a request of that queue, if it has brought a
// part of a message.
static struct weft_bringing *replaced(const struct fid_eq *eq, const struct fi_eq_cm_entry *entry,
				      size_t length)
{
	const struct weft_request *r = (const struct weft_request *)entry->data;
	struct weft_looks looks;
	struct message *m;
	union weft_host from;

	if (length < sizeof *entry + sizeof *r || !entry->info || !entry->info->dest_addr ||
	    entry->info->dest_addrlen < sizeof from.v4 || weft_begin_looks(&looks))
		return NULL;
	memset(&from, 0, sizeof from);
	memcpy(&from, entry->info->dest_addr,
	       entry->info->dest_addrlen < sizeof from ? entry->info->dest_addrlen : sizeof from);
	for (m = messages; m && !(m->by->events == eq && weft_asks_again(&looks, m->by, &from, r));)
		m = m->next;
	weft_end_looks(&looks);
	return m ? m->by : NULL;
}

// ends_now says whether the next event is the end of a connection of which ofi_rxm is not to hear
// yet: of which something may be in the queue still, or a message that has not come as a whole.
static int ends_now(const struct fid_eq *eq, uint32_t event, const struct fi_eq_cm_entry *entry,
		    size_t length)
{
	struct weft_bringing *b = NULL;
	struct message *m = NULL;
	int withheld = 0;

	if (event != FI_SHUTDOWN && event != FI_CONNREQ)
		return 0;
	pthread_mutex_lock(&lock);
	if (event == FI_CONNREQ)
		b = replaced(eq, entry, length);
	else
		for (b = connections; b && b->own != entry->fid;)
			b = b->next;
	if (b && !b->drained) {
		if (!b->withheld && !b->ending)
			__atomic_add_fetch(&count_of_ends, 1, __ATOMIC_RELEASE);
		b->withheld = 1;
		withheld = 1;
	} else if (b) {
		for (m = messages; m && m->by != b;)
			m = m->next;
		if (m)
			m->ended = 1;
		withheld = m && m->spare;
		// One that is replaced may go on to bring what its peer has sent before it ended.
		if (withheld && event == FI_CONNREQ && !b->ending)
			b->ending = REPLACED;
	}
	pthread_mutex_unlock(&lock);
	return withheld;
}

// was_read is for a queue of which so many were read; 0: it was empty.
static void was_read(const struct fid_cq *cq, ssize_t count)
{
	struct weft_bringing *b;

	pthread_mutex_lock(&lock);
	for (b = connections; b; b = b->next)
		if (b->queue == cq && b->withheld) {
			b->read += (size_t)count;
			b->drained |= !count || b->read > MOST_WAITING;
		}
	pthread_mutex_unlock(&lock);
}

// answered is for when ofi_rxm has done with the last event of a queue, and whether the one that it reads
// now is a request: where it has refused that, the connection goes on.
static void answered(const struct fid_eq *eq, int asks)
{
	struct weft_bringing *b;

	pthread_mutex_lock(&lock);
	for (b = connections; b; b = b->next) {
		if (b->events != eq)
			continue;
		if (asks) {
			b->asked = b->withheld;
		} else if (b->asked) {
			b->asked = 0;
			if (b->ending == REPLACED)
				b->ending = RESUMES;
			else if (!b->ending)
				ends_no_more(b);
		}
	}
	pthread_mutex_unlock(&lock);
}

ssize_t weft_read_ends(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags,
		       weft_read_events *read)
{
	union {
		struct fi_eq_cm_entry entry;
		char room[1024];
	} next;
	// Errors are read by this call, too, with a flag of libfabric's own: it reads one that is there
	// until it gets it, and whoever looks for events does not.
	const int for_event = !flags;
	uint32_t kind;
	ssize_t ret;

	// Whoever does not ask what an event is gets it all the same.
	if (!event)
		event = &kind;
	if (for_event && are_ends())
		answered(eq, 0);
	if (for_event && weft_amid_segments() && weft_segments_are_seen()) {
		// Where there was nothing, what a second look finds would not have been looked at. Without
		// such messages the events are left alone: looking each time had collectives of libfabric hang.
		ret = read(eq, event, &next, sizeof next, FI_PEEK);
		if (ret < 0)
			return ret;
		if (ret >= (ssize_t)sizeof next.entry && ends_now(eq, *event, &next.entry, (size_t)ret))
			return -FI_EAGAIN;
	}
	ret = read(eq, event, buf, len, flags);
	if (for_event && ret > 0 && *event == FI_CONNREQ && are_ends())
		answered(eq, 1);
	return ret;
}

// read_once reads a queue, and says of how many entries nobody is to hear.
static ssize_t read_once(struct fid_cq *cq, struct fi_cq_data_entry *entries, size_t count,
			 weft_read_queue *read, ptrdiff_t to_packet, ssize_t *late)
{
	struct head *h;
	ssize_t ret = read(cq, entries, count), i, n;

	*late = 0;
	if ((ret > 0 || ret == -FI_EAGAIN) && are_ends())
		was_read(cq, ret > 0 ? ret : 0);
	if (ret == -FI_EAGAIN && count && weft_amid_segments() && last(cq, entries))
		return 1;
	for (i = n = 0; i < ret; i++) {
		if ((entries[i].flags & FI_RECV) && entries[i].op_context && entries[i].len >= sizeof *h) {
			h = (struct head *)((char *)entries[i].op_context + to_packet);
			if (h->type == IN_SEGMENTS && note(cq, h, entries[i].flags, entries[i].op_context))
				continue;
		}
		entries[n++] = entries[i];
	}
	if (ret <= 0)
		return ret;
	*late = ret - n;
	return n;
}

ssize_t weft_read_segments(struct fid_cq *cq, struct fi_cq_data_entry *entries, size_t count,
			   weft_read_queue *read, ptrdiff_t to_packet)
{
	ssize_t ret, late, all = 0;

	// Who closes a connection reads until there is nothing: what is left of it then would be of
	// the one that has its place next.
	do {
		ret = read_once(cq, entries, count, read, to_packet, &late);
		all += late;
	} while (!ret && late && all < MOST_WAITING);
	return !ret && late ? -FI_EAGAIN : ret;
}

int weft_spares(const struct fid_ep *ep, void *buf, size_t length, void *context)
{
	const struct weft_bringing *b;
	struct message *m;

	if (!weft_amid_segments())
		return 0;
	pthread_mutex_lock(&lock);
	for (m = messages; m; m = m->next) {
		b = m->by;
		if (!m->spare && (b->shared ? b->shared == ep : b->own == &ep->fid))
			break;
	}
	if (m) {
		m->spare = context;
		m->buf = buf;
		m->length = length;
	}
	pthread_mutex_unlock(&lock);
	return m != NULL;
}

// has says whether a pointer is in an object of libfabric's.
static int has(struct fid_ep *ep, const void *pointer)
{
	void *const *word = (void *const *)ep;
	void *const *end = word + malloc_usable_size(ep) / sizeof *word;

	while (word < end && *word != pointer)
		word++;
	return word < end;
}

int weft_end_segments(struct fid_ep *ep)
{
	const struct fid_cq *not_its = NULL, *its = NULL;
	struct weft_bringing *b;
	struct message *m;
	int count = 0;

	pthread_mutex_lock(&lock);
	for (b = connections; b; b = b->next) {
		if (b->queue == not_its || (b->queue != its && !has(ep, b->queue))) {
			not_its = b->queue;
			continue;
		}
		its = b->queue;
		if (!b->withheld && !b->ending)
			__atomic_add_fetch(&count_of_ends, 1, __ATOMIC_RELEASE);
		b->ending = CLOSING;
	}
	for (m = messages; m; m = m->next)
		if (m->by->ending && m->spare) {
			m->ended = 1;
			count++;
		}
	pthread_mutex_unlock(&lock);
	return count;
}
