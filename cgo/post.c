//go:build linux

#include "fetch.h"

#include <string.h>

// Each kind of operation uses the simplest call that can carry it: the plain one
// without extras, the vector form for several buffers, the data form for an
// immediate, and the message form with flags for everything else.

static const struct weft_extra nothing;

static int needs_message(const struct weft_extra *x, uint64_t more)
{
	return more || x->remotes || (x->flags & ~FI_REMOTE_CQ_DATA) != 0 ||
	       ((x->flags & FI_REMOTE_CQ_DATA) && x->vectors > 1);
}

// message_flags are those of the message form. An operation's own flags take the
// place of the endpoint's defaults, as they do without FI_MORE.
static uint64_t message_flags(const struct weft_extra *x, uint64_t more)
{
	return (x->flags & ~FI_REMOTE_CQ_DATA) ? x->flags | (more & FI_MORE)
					       : x->flags | more;
}

// given are descriptors, or NULL if there is none among them: efa of libfabric 2.1 has shm look
// into what is not a descriptor where it gets one that is NULL.
static void **given(void **descs, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (descs[i])
			return descs;
	return NULL;
}

// buffers returns the operation's memory as a vector.
static size_t buffers(const struct weft_op *op, struct iovec *one, void **desc,
		      const struct iovec **iov, void ***descs)
{
	struct weft_extra *x = op->extra;

	if (x && x->vectors) {
		*iov = x->vector;
		*descs = x->desc;
		return x->vectors;
	}
	one->iov_base = (void *)op->buf;
	one->iov_len = op->len;
	*desc = (void *)op->desc;
	*iov = one;
	*descs = desc;
	return 1;
}

static ssize_t post_message(struct fid_ep *ep, const struct weft_op *op, uint64_t more)
{
	const struct weft_extra *x = op->extra;
	const struct iovec *iov;
	struct iovec one;
	void *desc, **descs;
	struct fi_msg msg;
	size_t n;

	if (op->kind == WEFT_INJECT)
		return x ? fi_injectdata(ep, (void *)op->buf, op->len, x->data,
					 op->peer)
			 : fi_inject(ep, (void *)op->buf, op->len, op->peer);
	if (!x && !more)
		return op->kind == WEFT_SEND
			       ? fi_send(ep, (void *)op->buf, op->len,
					 (void *)op->desc, op->peer, op->slot)
			       : fi_recv(ep, (void *)op->buf, op->len,
					 (void *)op->desc, op->peer, op->slot);
	n = buffers(op, &one, &desc, &iov, &descs);
	if (!x)
		x = &nothing;
	if (needs_message(x, more)) {
		uint64_t flags = message_flags(x, more);

		memset(&msg, 0, sizeof msg);
		msg.msg_iov = iov;
		msg.desc = given(descs, n);
		msg.iov_count = n;
		msg.addr = op->peer;
		msg.context = op->slot;
		msg.data = x->data;
		return op->kind == WEFT_SEND ? fi_sendmsg(ep, &msg, flags)
					     : fi_recvmsg(ep, &msg, flags);
	}
	if (op->kind == WEFT_RECV)
		return fi_recvv(ep, iov, given(descs, n), n, op->peer, op->slot);
	if (x->flags & FI_REMOTE_CQ_DATA)
		return fi_senddata(ep, iov->iov_base, iov->iov_len, *descs,
				   x->data, op->peer, op->slot);
	return fi_sendv(ep, iov, given(descs, n), n, op->peer, op->slot);
}

static ssize_t post_tagged(struct fid_ep *ep, const struct weft_op *op, uint64_t more)
{
	const struct weft_extra *x = op->extra;
	const struct iovec *iov;
	struct iovec one;
	void *desc, **descs;
	struct fi_msg_tagged msg;
	size_t n;

	if (op->kind == WEFT_TINJECT)
		return x ? fi_tinjectdata(ep, (void *)op->buf, op->len, x->data,
					  op->peer, op->tag)
			 : fi_tinject(ep, (void *)op->buf, op->len, op->peer,
				      op->tag);
	if (!x && !more)
		return op->kind == WEFT_TSEND
			       ? fi_tsend(ep, (void *)op->buf, op->len,
					  (void *)op->desc, op->peer, op->tag,
					  op->slot)
			       : fi_trecv(ep, (void *)op->buf, op->len,
					  (void *)op->desc, op->peer, op->tag,
					  op->ignore, op->slot);
	n = buffers(op, &one, &desc, &iov, &descs);
	if (!x)
		x = &nothing;
	if (needs_message(x, more)) {
		uint64_t flags = message_flags(x, more);

		memset(&msg, 0, sizeof msg);
		msg.msg_iov = iov;
		msg.desc = given(descs, n);
		// A peek has no buffer to fill.
		msg.iov_count = (x->flags & (FI_PEEK | FI_DISCARD)) && !op->len
					? 0 : n;
		msg.addr = op->peer;
		msg.tag = op->tag;
		msg.ignore = op->ignore;
		msg.context = op->slot;
		msg.data = x->data;
		return op->kind == WEFT_TSEND ? fi_tsendmsg(ep, &msg, flags)
					      : fi_trecvmsg(ep, &msg, flags);
	}
	if (op->kind == WEFT_TRECV)
		return fi_trecvv(ep, iov, given(descs, n), n, op->peer, op->tag,
				 op->ignore, op->slot);
	if (x->flags & FI_REMOTE_CQ_DATA)
		return fi_tsenddata(ep, iov->iov_base, iov->iov_len, *descs,
				    x->data, op->peer, op->tag, op->slot);
	return fi_tsendv(ep, iov, given(descs, n), n, op->peer, op->tag, op->slot);
}

static ssize_t post_rma(struct fid_ep *ep, const struct weft_op *op, uint64_t more)
{
	struct weft_extra *x = op->extra;
	const struct iovec *iov;
	struct iovec one;
	void *desc, **descs;
	struct fi_msg_rma msg;
	struct fi_rma_iov remote;
	size_t n, i;

	if (op->kind == WEFT_WRITE_INJECT)
		return (x->flags & FI_REMOTE_CQ_DATA)
			       ? fi_inject_writedata(ep, (void *)op->buf, op->len,
						     x->data, op->peer,
						     x->remote_address,
						     x->remote_key)
			       : fi_inject_write(ep, (void *)op->buf, op->len,
						 op->peer, x->remote_address,
						 x->remote_key);
	n = buffers(op, &one, &desc, &iov, &descs);
	if (needs_message(x, more)) {
		uint64_t flags = message_flags(x, more);

		memset(&msg, 0, sizeof msg);
		memset(&remote, 0, sizeof remote);
		remote.addr = x->remote_address;
		remote.key = x->remote_key;
		for (i = 0; i < n; i++)
			remote.len += iov[i].iov_len;
		msg.msg_iov = iov;
		msg.desc = given(descs, n);
		msg.iov_count = n;
		msg.addr = op->peer;
		msg.rma_iov = x->remotes ? x->remote : &remote;
		msg.rma_iov_count = x->remotes ? x->remotes : 1;
		msg.context = op->slot;
		msg.data = x->data;
		return op->kind == WEFT_READ ? fi_readmsg(ep, &msg, flags)
					     : fi_writemsg(ep, &msg, flags);
	}
	if (n == 1 && op->kind == WEFT_READ)
		return fi_read(ep, iov->iov_base, iov->iov_len, *descs, op->peer,
			       x->remote_address, x->remote_key, op->slot);
	if (op->kind == WEFT_READ)
		return fi_readv(ep, iov, given(descs, n), n, op->peer, x->remote_address,
				x->remote_key, op->slot);
	if (x->flags & FI_REMOTE_CQ_DATA)
		return fi_writedata(ep, iov->iov_base, iov->iov_len, *descs,
				    x->data, op->peer, x->remote_address,
				    x->remote_key, op->slot);
	if (n == 1)
		return fi_write(ep, iov->iov_base, iov->iov_len, *descs, op->peer,
				x->remote_address, x->remote_key, op->slot);
	return fi_writev(ep, iov, given(descs, n), n, op->peer, x->remote_address,
			 x->remote_key, op->slot);
}

static ssize_t post_atomic(struct fid_ep *ep, const struct weft_op *op, uint64_t more)
{
	struct weft_extra *x = op->extra;
	enum fi_datatype type = (enum fi_datatype)x->datatype;
	enum fi_op what = (enum fi_op)x->atomic;
	struct fi_ioc one, compare, result, several[WEFT_VECTORS];
	struct fi_rma_ioc remote;
	struct fi_msg_atomic msg;
	size_t n;
	void *desc = (void *)op->desc, *compare_desc = (void *)x->compare_desc,
	     *result_desc = (void *)x->result_desc;
	void *buf = (void *)op->buf;
	uint64_t flags = message_flags(x, more);

	// op->len counts values here.
	if (op->kind == WEFT_ATOMIC_INJECT)
		return fi_inject_atomic(ep, buf, op->len, op->peer,
					x->remote_address, x->remote_key, type,
					what);
	// A vector holds counts of values too, and has one result and comparand.
	result.addr = (void *)x->result;
	result.count = op->len;
	compare.addr = (void *)x->compare;
	compare.count = op->len;
	for (n = 0; n < x->vectors; n++) {
		several[n].addr = x->vector[n].iov_base;
		several[n].count = x->vector[n].iov_len;
	}
	if (!x->flags && !more && n && !x->remotes) {
		if (op->kind == WEFT_ATOMIC)
			return fi_atomicv(ep, several, given(x->desc, n), n, op->peer,
					  x->remote_address, x->remote_key, type,
					  what, op->slot);
		if (op->kind == WEFT_FETCH)
			return fi_fetch_atomicv(ep, several, given(x->desc, n), n, &result,
						&result_desc, 1, op->peer,
						x->remote_address, x->remote_key,
						type, what, op->slot);
		return fi_compare_atomicv(ep, several, given(x->desc, n), n, &compare,
					  &compare_desc, 1, &result, &result_desc,
					  1, op->peer, x->remote_address,
					  x->remote_key, type, what, op->slot);
	}
	if (!x->flags && !more && !x->remotes) {
		if (op->kind == WEFT_ATOMIC)
			return fi_atomic(ep, buf, op->len, desc, op->peer,
					 x->remote_address, x->remote_key, type,
					 what, op->slot);
		if (op->kind == WEFT_FETCH)
			return fi_fetch_atomic(ep, buf, op->len, desc,
					       (void *)x->result, result_desc,
					       op->peer, x->remote_address,
					       x->remote_key, type, what,
					       op->slot);
		return fi_compare_atomic(ep, buf, op->len, desc,
					 (void *)x->compare, compare_desc,
					 (void *)x->result, result_desc, op->peer,
					 x->remote_address, x->remote_key, type,
					 what, op->slot);
	}
	memset(&msg, 0, sizeof msg);
	memset(&remote, 0, sizeof remote);
	one.addr = buf;
	one.count = op->len;
	remote.addr = x->remote_address;
	remote.count = op->len;
	remote.key = x->remote_key;
	msg.msg_iov = n ? several : &one;
	msg.desc = n ? given(x->desc, n) : given(&desc, 1);
	msg.iov_count = n ? n : 1;
	msg.addr = op->peer;
	// Pieces of it hold counts of values, too, at the same place of the struct.
	_Static_assert(sizeof remote == sizeof *x->remote &&
			       offsetof(struct fi_rma_ioc, count) == offsetof(struct fi_rma_iov, len) &&
			       offsetof(struct fi_rma_ioc, key) == offsetof(struct fi_rma_iov, key),
		       "pieces of remote memory");
	msg.rma_iov = x->remotes ? (struct fi_rma_ioc *)x->remote : &remote;
	msg.rma_iov_count = x->remotes ? x->remotes : 1;
	msg.datatype = type;
	msg.op = what;
	msg.context = op->slot;
	msg.data = x->data;
	if (op->kind == WEFT_ATOMIC)
		return fi_atomicmsg(ep, &msg, flags);
	if (op->kind == WEFT_FETCH)
		return fi_fetch_atomicmsg(ep, &msg, &result, &result_desc, 1,
					  flags);
	return fi_compare_atomicmsg(ep, &msg, &compare, &compare_desc, 1, &result,
				    &result_desc, 1, flags);
}

// received says of a receive that libfabric has how many messages it would have
// fetched for it, and cannot.
static int received(ssize_t ret)
{
	return ret ? (int)ret : (int)weft_lost;
}

int weft_post(struct fid_ep *ep, struct weft_op *op, uint64_t more)
{
	weft_lost = 0;
	if (op->slot) {
		op->slot->token = op->token;
		op->slot->kind = op->kind;
	}
	// An endpoint without a capability may have no calls for it at all.
	switch (op->kind) {
	case WEFT_TSEND:
	case WEFT_TINJECT:
		return ep->tagged ? (int)post_tagged(ep, op, more) : -FI_ENOSYS;
	case WEFT_TRECV:
		return ep->tagged ? received(post_tagged(ep, op, more)) : -FI_ENOSYS;
	case WEFT_SEND:
	case WEFT_INJECT:
		return ep->msg ? (int)post_message(ep, op, more) : -FI_ENOSYS;
	case WEFT_RECV:
		return ep->msg ? received(post_message(ep, op, more)) : -FI_ENOSYS;
	case WEFT_READ:
	case WEFT_WRITE:
	case WEFT_WRITE_INJECT:
		if (!ep->rma)
			return -FI_ENOSYS;
		return op->extra ? (int)post_rma(ep, op, more) : -FI_EINVAL;
	case WEFT_ATOMIC:
	case WEFT_ATOMIC_INJECT:
	case WEFT_FETCH:
	case WEFT_COMPARE:
		if (!ep->atomic)
			return -FI_ENOSYS;
		return op->extra ? (int)post_atomic(ep, op, more) : -FI_EINVAL;
	}
	return -FI_EINVAL;
}
