//go:build linux

#include "lastingconnection.h"
#include "afterend.h"
#include "counted.h"
#include "fetch.h"
#include "segments.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

// When a connection ends, ofi_rxm closes the endpoint, which frees it, and then takes what has
// come by it from the queue of completions: it answers what asks for an answer, by the endpoint
// that is gone. Buffers may be given to it even later. So ofi_rxm has one of these.
struct lasting {
	struct fid_ep ep;
	struct fid_ep *own; // NULL: it is closed
	uint64_t number;
	struct weft_bringing brings;
	struct lasting *next_closed;
};

// How many are kept that are closed.
#define KEPT 1024

static struct lasting *oldest, **newest = &oldest;
static int kept;
// Those that are not closed, by place, of search.h.
static void *living;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct lasting *of(const void *ep)
{
	// The public part of an endpoint begins with that of a handle.
	return (struct lasting *)ep;
}

static struct fid_ep *own_of(const void *ep)
{
	return __atomic_load_n(&of(ep)->own, __ATOMIC_ACQUIRE);
}

static int by_place(const void *a, const void *b)
{
	return (uintptr_t)a < (uintptr_t)b ? -1 : (uintptr_t)a > (uintptr_t)b;
}

static int close_own(struct fid *fid)
{
	struct lasting *l = of(fid), *too_old = NULL;
	struct fid_ep *own = __atomic_exchange_n(&l->own, NULL, __ATOMIC_ACQ_REL);
	int ret, brought = own && l->brings.before;

	if (!own)
		return 0;
	// Its place may be another's afterwards.
	weft_brings_no_more(&l->brings);
	ret = fi_close(&own->fid);
	if (ret) {
		__atomic_store_n(&l->own, own, __ATOMIC_RELEASE);
		if (brought)
			weft_may_bring(&l->brings);
		return ret;
	}
	weft_keep(WEFT_FOR_CONNECTIONS, l);
	pthread_mutex_lock(&lock);
	tdelete(l, &living, by_place);
	*newest = l;
	newest = &l->next_closed;
	if (kept < KEPT) {
		kept++;
	} else {
		too_old = oldest;
		oldest = oldest->next_closed;
	}
	pthread_mutex_unlock(&lock);
	free(too_old);
	return 0;
}

// DO is what a call comes to: the same one of the own endpoint.
#define DO(call)                                                                                   \
	do {                                                                                       \
		struct fid_ep *own = own_of(ep);                                                   \
                                                                                                   \
		return own ? call : -FI_ENOTCONN;                                                  \
	} while (0)

// OR_END is DO for an operation that ends in the queue, if there is no own endpoint any more.
#define OR_END(call, context, flags, error)                                                        \
	do {                                                                                       \
		struct fid_ep *own = own_of(ep);                                                   \
                                                                                                   \
		return own ? call : weft_end_later(of(ep)->brings.queue, context, flags, error);   \
	} while (0)
#define OR_SENT(call, context) OR_END(call, context, FI_MSG | FI_SEND, 0)
#define OR_NOT_READ(call, context) OR_END(call, context, FI_RMA | FI_READ, FI_ENOTCONN)

// OR_DROP is DO for one that says nothing of its end.
#define OR_DROP(call)                                                                              \
	do {                                                                                       \
		struct fid_ep *own = own_of(ep);                                                   \
                                                                                                   \
		return own ? call : 0;                                                             \
	} while (0)

static int bind(struct fid *ep, struct fid *other, uint64_t flags)
{
	struct lasting *l = of(ep);

	if (other->fclass == FI_CLASS_CQ)
		l->brings.queue = (struct fid_cq *)other;
	else if (other->fclass == FI_CLASS_EQ)
		l->brings.events = (struct fid_eq *)other;
	else if (other->fclass == FI_CLASS_SRX_CTX)
		l->brings.shared = (struct fid_ep *)other;
	DO(fi_ep_bind(own, other, flags));
}

static int control(struct fid *ep, int command, void *arg)
{
	DO(fi_control(&own->fid, command, arg));
}

static int open_ops(struct fid *ep, const char *name, uint64_t flags, void **ops, void *context)
{
	DO(fi_open_ops(&own->fid, name, flags, ops, context));
}

static int set_ops(struct fid *ep, const char *name, uint64_t flags, void *ops, void *context)
{
	DO(fi_set_ops(&own->fid, name, flags, ops, context));
}

static struct fi_ops handle = {
	.size = sizeof(struct fi_ops),
	.close = close_own,
	.bind = bind,
	.control = control,
	.ops_open = open_ops,
	.ops_set = set_ops,
};

static ssize_t cancel(struct fid *ep, void *context)
{
	DO(fi_cancel(&own->fid, context));
}

static int own_option(struct fid *ep, int level, int name, void *value, size_t *length)
{
	DO(fi_getopt(&own->fid, level, name, value, length));
}

static int set_own_option(struct fid *ep, int level, int name, const void *value, size_t length)
{
	DO(fi_setopt(&own->fid, level, name, value, length));
}

static struct fi_ops_ep options = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = cancel,
	.getopt = own_option,
	.setopt = set_own_option,
};

static int setname(struct fid *ep, void *address, size_t length)
{
	DO(fi_setname(&own->fid, address, length));
}

static int getname(struct fid *ep, void *address, size_t *length)
{
	DO(fi_getname(&own->fid, address, length));
}

static int getpeer(struct fid_ep *ep, void *address, size_t *length)
{
	DO(fi_getpeer(own, address, length));
}

// learn_number finds the number that the peer is told to call the connection by.
static void learn_number(struct fid_ep *ep, const void *data, size_t length, size_t place)
{
	struct weft_bringing *b = &of(ep)->brings;
	struct fid_ep *own = own_of(ep);

	if (!own || length < place + sizeof b->number || !b->queue || !b->events || b->before)
		return;
	memcpy(&b->number, (const char *)data + place, sizeof b->number);
	b->own = &own->fid;
	b->given = ep;
	weft_may_bring(b);
}

// Where it is in what ofi_rxm says when it connects, and accepts (union rxm_cm_data).
#define NUMBER_OF_CALLER 16
#define NUMBER_OF_CALLED 0

static int connect_(struct fid_ep *ep, const void *address, const void *data, size_t length)
{
	learn_number(ep, data, length, NUMBER_OF_CALLER);
	DO(fi_connect(own, address, data, length));
}

static int accept_(struct fid_ep *ep, const void *data, size_t length)
{
	learn_number(ep, data, length, NUMBER_OF_CALLED);
	DO(fi_accept(own, data, length));
}

static int shutdown_(struct fid_ep *ep, uint64_t flags)
{
	DO(fi_shutdown(own, flags));
}

static struct fi_ops_cm connecting = {
	.size = sizeof(struct fi_ops_cm),
	.setname = setname,
	.getname = getname,
	.getpeer = getpeer,
	.connect = connect_,
	.accept = accept_,
	.shutdown = shutdown_,
};

static ssize_t receive(struct fid_ep *ep, void *buf, size_t length, void *desc, fi_addr_t peer,
		       void *context)
{
	struct fid_ep *posted = own_of(ep);

	weft_learn(buf, length, context);
	if (posted && weft_spares(posted, buf, length, context))
		return 0;
	DO(fi_recv(own, buf, length, desc, peer, context));
}

static ssize_t receivev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t peer, void *context)
{
	DO(fi_recvv(own, iov, desc, count, peer, context));
}

static ssize_t receivemsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	DO(fi_recvmsg(own, msg, flags));
}

static ssize_t send_(struct fid_ep *ep, const void *buf, size_t length, void *desc, fi_addr_t peer,
		     void *context)
{
	OR_SENT(fi_send(own, buf, length, desc, peer, context), context);
}

static ssize_t sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		     fi_addr_t peer, void *context)
{
	OR_SENT(fi_sendv(own, iov, desc, count, peer, context), context);
}

static ssize_t sendmsg_(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	OR_SENT(fi_sendmsg(own, msg, flags), msg->context);
}

static ssize_t inject(struct fid_ep *ep, const void *buf, size_t length, fi_addr_t peer)
{
	OR_DROP(fi_inject(own, buf, length, peer));
}

static ssize_t senddata(struct fid_ep *ep, const void *buf, size_t length, void *desc,
			uint64_t data, fi_addr_t peer, void *context)
{
	OR_SENT(fi_senddata(own, buf, length, desc, data, peer, context), context);
}

static ssize_t injectdata(struct fid_ep *ep, const void *buf, size_t length, uint64_t data,
			  fi_addr_t peer)
{
	OR_DROP(fi_injectdata(own, buf, length, data, peer));
}

static struct fi_ops_msg messages = {
	.size = sizeof(struct fi_ops_msg),
	.recv = receive,
	.recvv = receivev,
	.recvmsg = receivemsg,
	.send = send_,
	.sendv = sendv,
	.sendmsg = sendmsg_,
	.inject = inject,
	.senddata = senddata,
	.injectdata = injectdata,
};

// Where the provider has tagged messages ofi_rxm may leave them to it.
static ssize_t treceive(struct fid_ep *ep, void *buf, size_t length, void *desc, fi_addr_t peer,
			uint64_t tag, uint64_t ignore, void *context)
{
	DO(fi_trecv(own, buf, length, desc, peer, tag, ignore, context));
}

static ssize_t treceivev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t peer, uint64_t tag, uint64_t ignore, void *context)
{
	DO(fi_trecvv(own, iov, desc, count, peer, tag, ignore, context));
}

static ssize_t treceivemsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	DO(fi_trecvmsg(own, msg, flags));
}

static ssize_t tsend(struct fid_ep *ep, const void *buf, size_t length, void *desc, fi_addr_t peer,
		     uint64_t tag, void *context)
{
	DO(fi_tsend(own, buf, length, desc, peer, tag, context));
}

static ssize_t tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t peer, uint64_t tag, void *context)
{
	DO(fi_tsendv(own, iov, desc, count, peer, tag, context));
}

static ssize_t tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	DO(fi_tsendmsg(own, msg, flags));
}

static ssize_t tinject(struct fid_ep *ep, const void *buf, size_t length, fi_addr_t peer,
		       uint64_t tag)
{
	DO(fi_tinject(own, buf, length, peer, tag));
}

static ssize_t tsenddata(struct fid_ep *ep, const void *buf, size_t length, void *desc,
			 uint64_t data, fi_addr_t peer, uint64_t tag, void *context)
{
	DO(fi_tsenddata(own, buf, length, desc, data, peer, tag, context));
}

static ssize_t tinjectdata(struct fid_ep *ep, const void *buf, size_t length, uint64_t data,
			   fi_addr_t peer, uint64_t tag)
{
	DO(fi_tinjectdata(own, buf, length, data, peer, tag));
}

static struct fi_ops_tagged tagged = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = treceive,
	.recvv = treceivev,
	.recvmsg = treceivemsg,
	.send = tsend,
	.sendv = tsendv,
	.sendmsg = tsendmsg,
	.inject = tinject,
	.senddata = tsenddata,
	.injectdata = tinjectdata,
};

static ssize_t read_(struct fid_ep *ep, void *buf, size_t length, void *desc, fi_addr_t peer,
		     uint64_t address, uint64_t key, void *context)
{
	OR_NOT_READ(fi_read(own, buf, length, desc, peer, address, key, context), context);
}

static ssize_t readv_(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t peer, uint64_t address, uint64_t key, void *context)
{
	OR_NOT_READ(fi_readv(own, iov, desc, count, peer, address, key, context), context);
}

static ssize_t readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	OR_NOT_READ(fi_readmsg(own, msg, flags), msg->context);
}

static ssize_t write_(struct fid_ep *ep, const void *buf, size_t length, void *desc,
		      fi_addr_t peer, uint64_t address, uint64_t key, void *context)
{
	DO(fi_write(own, buf, length, desc, peer, address, key, context));
}

static ssize_t writev_(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t peer, uint64_t address, uint64_t key, void *context)
{
	DO(fi_writev(own, iov, desc, count, peer, address, key, context));
}

static ssize_t writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	DO(fi_writemsg(own, msg, flags));
}

static ssize_t inject_write(struct fid_ep *ep, const void *buf, size_t length, fi_addr_t peer,
			    uint64_t address, uint64_t key)
{
	DO(fi_inject_write(own, buf, length, peer, address, key));
}

static ssize_t writedata(struct fid_ep *ep, const void *buf, size_t length, void *desc,
			 uint64_t data, fi_addr_t peer, uint64_t address, uint64_t key,
			 void *context)
{
	DO(fi_writedata(own, buf, length, desc, data, peer, address, key, context));
}

static ssize_t inject_writedata(struct fid_ep *ep, const void *buf, size_t length, uint64_t data,
				fi_addr_t peer, uint64_t address, uint64_t key)
{
	DO(fi_inject_writedata(own, buf, length, data, peer, address, key));
}

static struct fi_ops_rma accesses = {
	.size = sizeof(struct fi_ops_rma),
	.read = read_,
	.readv = readv_,
	.readmsg = readmsg,
	.write = write_,
	.writev = writev_,
	.writemsg = writemsg,
	.inject = inject_write,
	.writedata = writedata,
	.injectdata = inject_writedata,
};

int weft_lasting_connection(struct fid_ep **connection, uint64_t number)
{
	struct lasting *l = weft_take(WEFT_FOR_CONNECTIONS, sizeof *l);
	void *found;

	if (!l)
		return -FI_ENOMEM;
	l->own = *connection;
	l->number = number;
	l->ep.fid = l->own->fid;
	l->ep.fid.ops = &handle;
	l->ep.ops = &options;
	l->ep.cm = &connecting;
	l->ep.msg = &messages;
	l->ep.rma = &accesses;
	l->ep.tagged = &tagged;
	pthread_mutex_lock(&lock);
	found = tsearch(l, &living, by_place);
	pthread_mutex_unlock(&lock);
	if (!found) {
		weft_give(WEFT_FOR_CONNECTIONS, l);
		return -FI_ENOMEM;
	}
	*connection = &l->ep;
	return 0;
}

uint64_t weft_connection_number(const struct fid_ep *place)
{
	uint64_t number = 0;

	pthread_mutex_lock(&lock);
	if (tfind(place, &living, by_place) && own_of(place))
		number = of(place)->number;
	pthread_mutex_unlock(&lock);
	return number;
}

const struct fid_cq *weft_ended_queue(const struct fid_ep *place)
{
	const struct fid_cq *queue;
	const struct lasting *l;

	pthread_mutex_lock(&lock);
	for (l = oldest; l && &l->ep != place;)
		l = l->next_closed;
	queue = l ? l->brings.queue : NULL;
	pthread_mutex_unlock(&lock);
	return queue;
}
