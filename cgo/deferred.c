//go:build linux

#include "deferred.h"

#include <string.h>

static int control(struct fid_domain *domain, int command, void *arg)
{
	if (!FI_CHECK_OP(domain->fid.ops, struct fi_ops, control))
		return -FI_ENOSYS;
	return fi_control(&domain->fid, command, arg);
}

// buffers returns the operation's memory as a vector that stays.
static size_t buffers(struct weft_work *w, const struct iovec **iov, void ***desc)
{
	if (w->extra.vectors) {
		*iov = w->extra.vector;
		*desc = w->extra.desc;
		return w->extra.vectors;
	}
	w->one.iov_base = (void *)w->op.buf;
	w->one.iov_len = w->op.len;
	w->desc = (void *)w->op.desc;
	*iov = &w->one;
	*desc = &w->desc;
	return 1;
}

static void fill_message(struct weft_work *w, struct fid_ep *ep)
{
	struct fi_op_msg *m = &w->call.msg;

	m->ep = ep;
	m->flags = w->extra.flags;
	m->msg.iov_count = buffers(w, &m->msg.msg_iov, &m->msg.desc);
	m->msg.addr = w->op.peer;
	m->msg.context = &w->work.context;
	m->msg.data = w->extra.data;
	w->work.op.msg = m;
}

static void fill_tagged(struct weft_work *w, struct fid_ep *ep)
{
	struct fi_op_tagged *m = &w->call.tagged;

	m->ep = ep;
	m->flags = w->extra.flags;
	m->msg.iov_count = buffers(w, &m->msg.msg_iov, &m->msg.desc);
	m->msg.addr = w->op.peer;
	m->msg.tag = w->op.tag;
	m->msg.ignore = w->op.ignore;
	m->msg.context = &w->work.context;
	m->msg.data = w->extra.data;
	w->work.op.tagged = m;
}

static void fill_rma(struct weft_work *w, struct fid_ep *ep)
{
	struct fi_op_rma *m = &w->call.rma;
	size_t i;

	m->ep = ep;
	m->flags = w->extra.flags;
	m->msg.iov_count = buffers(w, &m->msg.msg_iov, &m->msg.desc);
	w->remote.addr = w->extra.remote_address;
	w->remote.key = w->extra.remote_key;
	w->remote.len = 0;
	for (i = 0; i < m->msg.iov_count; i++)
		w->remote.len += m->msg.msg_iov[i].iov_len;
	m->msg.rma_iov = w->extra.remotes ? w->extra.remote : &w->remote;
	m->msg.rma_iov_count = w->extra.remotes ? w->extra.remotes : 1;
	m->msg.addr = w->op.peer;
	m->msg.context = &w->work.context;
	m->msg.data = w->extra.data;
	w->work.op.rma = m;
}

static void fill_atomic(struct weft_work *w, struct fi_msg_atomic *m)
{
	struct weft_extra *x = &w->extra;
	size_t i;

	w->values[0].addr = (void *)w->op.buf;
	w->values[0].count = w->op.len;
	// A vector holds counts of values here.
	for (i = 0; i < x->vectors; i++) {
		w->values[i].addr = x->vector[i].iov_base;
		w->values[i].count = x->vector[i].iov_len;
	}
	w->desc = (void *)w->op.desc;
	w->result.addr = (void *)x->result;
	w->result.count = w->op.len;
	w->result_desc = (void *)x->result_desc;
	w->compare.addr = (void *)x->compare;
	w->compare.count = w->op.len;
	w->compare_desc = (void *)x->compare_desc;
	w->remote_value.addr = x->remote_address;
	w->remote_value.key = x->remote_key;
	w->remote_value.count = w->op.len;
	m->msg_iov = w->values;
	m->desc = x->vectors ? x->desc : &w->desc;
	m->iov_count = x->vectors ? x->vectors : 1;
	m->addr = w->op.peer;
	m->rma_iov = x->remotes ? (struct fi_rma_ioc *)x->remote : &w->remote_value;
	m->rma_iov_count = x->remotes ? x->remotes : 1;
	m->datatype = (enum fi_datatype)x->datatype;
	m->op = (enum fi_op)x->atomic;
	m->context = &w->work.context;
	m->data = x->data;
}

static int fill(struct weft_work *w, struct fid_ep *ep)
{
	switch (w->op.kind) {
	case WEFT_SEND:
	case WEFT_RECV:
		w->work.op_type = w->op.kind == WEFT_SEND ? FI_OP_SEND : FI_OP_RECV;
		fill_message(w, ep);
		return 0;
	case WEFT_TSEND:
	case WEFT_TRECV:
		w->work.op_type = w->op.kind == WEFT_TSEND ? FI_OP_TSEND : FI_OP_TRECV;
		fill_tagged(w, ep);
		return 0;
	case WEFT_READ:
	case WEFT_WRITE:
		w->work.op_type = w->op.kind == WEFT_READ ? FI_OP_READ : FI_OP_WRITE;
		fill_rma(w, ep);
		return 0;
	case WEFT_ATOMIC:
		w->work.op_type = FI_OP_ATOMIC;
		w->call.atomic.ep = ep;
		w->call.atomic.flags = w->extra.flags;
		fill_atomic(w, &w->call.atomic.msg);
		w->work.op.atomic = &w->call.atomic;
		return 0;
	case WEFT_FETCH:
		w->work.op_type = FI_OP_FETCH_ATOMIC;
		w->call.fetch.ep = ep;
		w->call.fetch.flags = w->extra.flags;
		fill_atomic(w, &w->call.fetch.msg);
		w->call.fetch.fetch.msg_iov = &w->result;
		w->call.fetch.fetch.desc = &w->result_desc;
		w->call.fetch.fetch.iov_count = 1;
		w->work.op.fetch_atomic = &w->call.fetch;
		return 0;
	case WEFT_COMPARE:
		w->work.op_type = FI_OP_COMPARE_ATOMIC;
		w->call.compare.ep = ep;
		w->call.compare.flags = w->extra.flags;
		fill_atomic(w, &w->call.compare.msg);
		w->call.compare.fetch.msg_iov = &w->result;
		w->call.compare.fetch.desc = &w->result_desc;
		w->call.compare.fetch.iov_count = 1;
		w->call.compare.compare.msg_iov = &w->compare;
		w->call.compare.compare.desc = &w->compare_desc;
		w->call.compare.compare.iov_count = 1;
		w->work.op.compare_atomic = &w->call.compare;
		return 0;
	}
	return -FI_EINVAL;
}

int weft_work_queue(struct fid_domain *domain, struct weft_work *w,
		    struct fid_ep *ep, struct fid_cntr *trigger,
		    uint64_t threshold, struct fid_cntr *done)
{
	int ret = fill(w, ep);

	if (ret)
		return ret;
	w->work.threshold = threshold;
	w->work.triggering_cntr = trigger;
	w->work.completion_cntr = done;
	return control(domain, FI_QUEUE_WORK, &w->work);
}

int weft_work_queue_counter(struct fid_domain *domain, struct weft_work *w,
			    struct fid_cntr *trigger, uint64_t threshold,
			    struct fid_cntr *counter, int set, uint64_t value)
{
	w->call.cntr.cntr = counter;
	w->call.cntr.value = value;
	w->work.op_type = set ? FI_OP_CNTR_SET : FI_OP_CNTR_ADD;
	w->work.op.cntr = &w->call.cntr;
	w->work.threshold = threshold;
	w->work.triggering_cntr = trigger;
	w->work.completion_cntr = NULL;
	return control(domain, FI_QUEUE_WORK, &w->work);
}

int weft_work_cancel(struct fid_domain *domain, struct weft_work *w)
{
	return control(domain, FI_CANCEL_WORK, &w->work);
}

int weft_work_flush(struct fid_domain *domain)
{
	return control(domain, FI_FLUSH_WORK, NULL);
}

int weft_work_cancel_started(struct weft_work *w, struct fid_ep *ep)
{
	return (int)fi_cancel(&ep->fid, &w->work.context);
}

// A triggered operation carries its condition in its context, and that is where
// a slot begins.
void weft_slot_trigger(struct weft_slot *slot, struct fid_cntr *trigger,
		       uint64_t threshold)
{
	struct fi_triggered_context2 *c = (struct fi_triggered_context2 *)&slot->context;

	_Static_assert(sizeof *c <= sizeof slot->context, "a slot has room for a condition");
	memset(c, 0, sizeof *c);
	c->event_type = FI_TRIGGER_THRESHOLD;
	c->trigger.threshold.cntr = trigger;
	c->trigger.threshold.threshold = threshold;
}
