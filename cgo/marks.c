//go:build linux

#define _GNU_SOURCE
#include "afterend.h"
#include "fetch.h"
#include "forgotten.h"
#include "lastingconnection.h"
#include "mapped.h"
#include "nooperation.h"
#include "segments.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// The connections of ofi_rxm are endpoints of a domain of the provider below it. That
// domain's calls are replaced, so that each connection gets a number, one more than the
// last, when it is opened, and each message when it comes that of the last connection.
// A message with a smaller number than the connection that has its place is one of who
// had the place before.

// A message that is to be fetched is a header of 170 bytes or so, in a buffer of 16 KiB or
// what the environment says. What is no longer than HEADER_MOST, with or without the
// WEFT_BEFORE_MESSAGES that are before all messages, ends before PLACE, where the number comes.
#define HEADER_MOST 256
#define PLACE 512

// copy is the head of a copy of a table of calls.
struct copy {
	const void *own;
	struct copy *next;
};

static struct copy *copies;
// Whether there are connections that have no number.
static int incomplete;
// They begin somewhere that other bytes are not taken for.
#define FIRST_NUMBER (UINT64_C(1) << 62)
static uint64_t numbers = FIRST_NUMBER;
// From the context of a buffer to the number. 0: not known yet; -1: there is none.
static ptrdiff_t to_number;
// From there to the buffer. 0: not known; -1: it differs.
static ptrdiff_t to_buffer;
size_t weft_posted_length;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// copy_of returns the copy of a table, and makes it if there is none.
static void *copy_of(const void *own, size_t size, int *made)
{
	struct copy *c = copies;

	*made = 0;
	while (c && c->own != own)
		c = c->next;
	if (!c) {
		c = malloc(sizeof *c + size);
		if (!c)
			return NULL;
		*made = 1;
		c->own = own;
		c->next = copies;
		memcpy(c + 1, own, size);
		copies = c;
	}
	return c + 1;
}

static const void *own_of(const void *copy)
{
	return ((const struct copy *)copy - 1)->own;
}

void weft_learn(const char *buf, size_t length, const char *context)
{
	ptrdiff_t is = buf + PLACE - context, to = is - PLACE;
	ptrdiff_t was = __atomic_load_n(&to_number, __ATOMIC_RELAXED);
	ptrdiff_t was_to = __atomic_load_n(&to_buffer, __ATOMIC_RELAXED);

	__atomic_store_n(&weft_posted_length, length, __ATOMIC_RELAXED);
	if (was_to != to && was_to != -1)
		__atomic_store_n(&to_buffer, was_to ? -1 : to, __ATOMIC_RELAXED);
	if (is <= PLACE || is > 4 * PLACE ||
	    (length > WEFT_BEFORE_MESSAGES && length < PLACE + sizeof numbers))
		is = -1;
	if (was == is || was == -1)
		return;
	if (was)
		is = -1;
	__atomic_store_n(&to_number, is, __ATOMIC_RELAXED);
}

static ssize_t receive_by_all(struct fid_ep *shared, void *buf, size_t len, void *desc,
			      fi_addr_t peer, void *context)
{
	const struct fi_ops_msg *own = own_of(shared->msg);

	weft_learn(buf, len, context);
	if (weft_spares(shared, buf, len, context))
		return 0;
	return own->recv(shared, buf, len, desc, peer, context);
}

void weft_post_for_all(struct fid_ep *shared, void *buf, size_t length, void *context)
{
	const struct fi_ops_msg *own = own_of(shared->msg);

	own->recv(shared, buf, length, NULL, FI_ADDR_UNSPEC, context);
}

int weft_segments_are_seen(void)
{
	// ofi_rxm of 1.x has what it has got of a message where it looks for it.
	return FI_MAJOR_VERSION >= 2 && __atomic_load_n(&to_buffer, __ATOMIC_RELAXED) > 0 &&
	       __atomic_load_n(&weft_posted_length, __ATOMIC_RELAXED) > WEFT_BEFORE_MESSAGES;
}

static ssize_t read_queue(struct fid_cq *cq, void *buf, size_t count)
{
	return weft_read_of_operations(cq, buf, count, own_of(cq->ops));
}

static ssize_t read_error(struct fid_cq *cq, struct fi_cq_err_entry *error, uint64_t flags)
{
	return weft_read_error_of_operation(cq, error, flags, own_of(cq->ops));
}

static ssize_t read_and_mark(struct fid_cq *cq, void *buf, size_t count)
{
	const struct fi_cq_data_entry *e = buf;
	ptrdiff_t at = __atomic_load_n(&to_number, __ATOMIC_RELAXED);
	ptrdiff_t to = __atomic_load_n(&to_buffer, __ATOMIC_RELAXED);
	uint64_t number = __atomic_load_n(&numbers, __ATOMIC_RELAXED);
	ssize_t ret, i;

	if (weft_segments_are_seen())
		ret = weft_read_segments(cq, buf, count, read_queue, to);
	else
		ret = read_queue(cq, buf, count);

	for (i = 0; i < ret && at > 0; i++)
		if ((e[i].flags & FI_RECV) && e[i].op_context &&
		    e[i].len <= HEADER_MOST)
			memcpy((char *)e[i].op_context + at, &number, sizeof number);
	return ret;
}

int weft_came_by(const struct fid_ep *connection, const void *message)
{
	ptrdiff_t at = __atomic_load_n(&to_number, __ATOMIC_RELAXED);
	uint64_t number, first;
	int all;

	pthread_mutex_lock(&lock);
	all = !incomplete;
	pthread_mutex_unlock(&lock);
	// What is at the place of one that has ended may be anything.
	first = weft_connection_number(connection);
	if (!first)
		return !all;
	if (at <= 0)
		return 1;
	memcpy(&number, (const char *)message + at, sizeof number);
	return number < FIRST_NUMBER || number >= first;
}

static void leave_unmarked(void)
{
	pthread_mutex_lock(&lock);
	incomplete = 1;
	pthread_mutex_unlock(&lock);
}

static int open_connection(struct fid_domain *domain, struct fi_info *info,
			   struct fid_ep **connection, void *context)
{
	const struct fi_ops_domain *own = own_of(domain->ops);
	int ret = own->endpoint(domain, info, connection, context);
	void *flow_control;

	if (ret || !info || !info->ep_attr || info->ep_attr->type != FI_EP_MSG)
		return ret;
	// verbs has calls for credits, which look into the endpoint that they get: only their
	// own would do.
	if (fi_open_ops(&domain->fid, "ofix_flow_ctrl_v1", 0, &flow_control, NULL) == 0) {
		leave_unmarked();
		return 0;
	}
	ret = weft_lasting_connection(connection,
				   __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED));
	if (ret)
		fi_close(&(*connection)->fid);
	return ret;
}

static int open_shared(struct fid_domain *domain, struct fi_rx_attr *attr,
		       struct fid_ep **shared, void *context)
{
	const struct fi_ops_domain *own = own_of(domain->ops);
	int ret = own->srx_ctx(domain, attr, shared, context), made;
	struct fi_ops_msg *copy;

	if (ret || !(*shared)->msg)
		return ret;
	pthread_mutex_lock(&lock);
	copy = copy_of((*shared)->msg, (*shared)->msg->size, &made);
	if (made)
		copy->recv = receive_by_all;
	if (copy)
		(*shared)->msg = copy;
	pthread_mutex_unlock(&lock);
	return 0;
}

static ssize_t read_event(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	const struct fi_ops_eq *own = own_of(eq->ops);

	return weft_read_ends(eq, event, buf, len, flags, own->read);
}

void weft_watch_events(struct fid_eq *events)
{
	struct fi_ops_eq *copy;
	int made;

	pthread_mutex_lock(&lock);
	if (events->ops->read != read_event) {
		copy = copy_of(events->ops, events->ops->size, &made);
		if (made)
			copy->read = read_event;
		if (copy)
			events->ops = copy;
	}
	pthread_mutex_unlock(&lock);
}

static int close_queue(struct fid *queue)
{
	const struct fi_ops *own = own_of(queue->ops);

	weft_no_more_ended((const struct fid_cq *)queue);
	return own->close(queue);
}

static int open_queue(struct fid_domain *domain, struct fi_cq_attr *attr,
		      struct fid_cq **cq, void *context)
{
	const struct fi_ops_domain *own = own_of(domain->ops);
	int ret = own->cq_open(domain, attr, cq, context), made;
	struct fi_ops_cq *copy;
	struct fi_ops *handle;

	if (ret || attr->format != FI_CQ_FORMAT_DATA)
		return ret;
	pthread_mutex_lock(&lock);
	copy = copy_of((*cq)->ops, (*cq)->ops->size, &made);
	if (made) {
		copy->read = read_and_mark;
		copy->readerr = read_error;
	}
	handle = copy_of((*cq)->fid.ops, (*cq)->fid.ops->size, &made);
	if (made)
		handle->close = close_queue;
	if (copy && handle) {
		(*cq)->ops = copy;
		(*cq)->fid.ops = handle;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static void replace(struct fid_domain *domain)
{
	int made;
	struct fi_ops_domain *copy = copy_of(domain->ops, domain->ops->size, &made);

	if (made) {
		copy->endpoint = open_connection;
		copy->srx_ctx = open_shared;
		copy->cq_open = open_queue;
	}
	if (copy)
		domain->ops = copy;
	else
		incomplete = 1;
}

// is_domain says whether there is an open domain at the place.
static int is_domain(const struct weft_looks *l, const struct fid_domain *place)
{
	const size_t enough = offsetof(struct fi_ops_domain, query_atomic);
	struct fid_domain d;
	struct fi_ops_domain calls;

	return place && (uintptr_t)place % sizeof(void *) == 0 &&
	       weft_look(l, place, &d, sizeof d) && d.fid.fclass == FI_CLASS_DOMAIN &&
	       weft_look(l, d.ops, &calls, enough) && calls.size >= enough &&
	       weft_is_code((void *)calls.endpoint) && weft_is_code((void *)calls.srx_ctx);
}

int weft_no_place_for_marks(void)
{
	__atomic_store_n(&to_number, -1, __ATOMIC_RELAXED);
	return 0;
}

int weft_mark_messages(struct fid_domain *domain)
{
	struct fid_domain **word = (struct fid_domain **)domain;
	struct fid_domain **end = word + malloc_usable_size(domain) / sizeof *word;
	struct weft_looks looks;
	int count = 0;

	if (weft_begin_looks(&looks)) {
		leave_unmarked();
		return 0;
	}
	pthread_mutex_lock(&lock);
	for (; word < end; word++)
		if (*word != domain && is_domain(&looks, *word)) {
			replace(*word);
			weft_keep_registrations(*word);
			count++;
		}
	if (!count)
		incomplete = 1;
	pthread_mutex_unlock(&lock);
	weft_end_looks(&looks);
	return count;
}

int weft_close_registrations(struct fid_domain *domain)
{
	struct fid_domain **word = (struct fid_domain **)domain;
	struct fid_domain **end = word + malloc_usable_size(domain) / sizeof *word;
	struct weft_looks looks;
	int ret, count = 0;

	if (weft_begin_looks(&looks))
		return 0;
	for (; word < end; word++)
		if (*word != domain && is_domain(&looks, *word)) {
			ret = weft_close_forgotten(*word);
			if (ret < 0) {
				count = ret;
				break;
			}
			count += ret;
		}
	weft_end_looks(&looks);
	return count;
}
