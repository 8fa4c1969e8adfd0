//go:build linux

#define _GNU_SOURCE
#include "calls.h"
#include "counted.h"
#include "datagrams.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// ofi_rxd looks up what a datagram says, such as the number of its peer, and nothing about the
// datagram before: any one that is not a peer's ends the process, also an empty one. So libfabric
// gets other functions to bind, close, send and receive with. What comes from where the process has not
// sent anything is dropped, unless it introduces whoever has sent it.

// A datagram begins so (struct rxd_base_hdr); an introduction has more (struct rxd_rts_pkt).
struct head {
	uint8_t version, kind;
	uint16_t flags;
	uint32_t peer;
	uint64_t number;
};

struct introduction {
	struct head head;
	uint64_t peer;
	uint8_t name[64];
};

#define VERSION 2
#define INTRODUCES 9
#define LAST_KIND 14

// How many may introduce themselves of whom the process had not heard, and how many datagrams one
// call drops.
#define MOST_UNINVITED 32768
#define MOST_DROPPED 64

struct origin {
	uint16_t family, port;
	uint8_t host[16];
};

// What is known of a descriptor of such an endpoint, for as long as it is the same file: where its
// peers are, in a table of which half is free, and whose size is a power of two.
struct peers {
	uint64_t inode;
	struct origin *origins;
	size_t room, used, uninvited;
};

#define MOST_DESCRIPTORS 65536
static struct peers *descriptors[MOST_DESCRIPTORS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all tables
static _Thread_local int opening;

static int origin_of(const void *address, size_t length, struct origin *o)
{
	const struct sockaddr_in *a = address;
	const struct sockaddr_in6 *b = address;

	memset(o, 0, sizeof *o);
	if (length >= sizeof *a && a->sin_family == AF_INET) {
		o->port = a->sin_port;
		memcpy(o->host, &a->sin_addr, sizeof a->sin_addr);
	} else if (length >= sizeof *b && b->sin6_family == AF_INET6) {
		o->port = b->sin6_port;
		memcpy(o->host, &b->sin6_addr, sizeof b->sin6_addr);
	} else {
		return 0;
	}
	o->family = a->sin_family;
	return 1;
}

// place is where an origin is in the table, or would be.
static struct origin *place(const struct peers *p, const struct origin *o)
{
	const uint8_t *bytes = (const uint8_t *)o;
	uint64_t hash = 14695981039346656037u;
	size_t i;

	for (i = 0; i < sizeof *o; i++)
		hash = (hash ^ bytes[i]) * 1099511628211u;
	for (i = (size_t)(hash ^ hash >> 32) & (p->room - 1);
	     p->origins[i].family && memcmp(&p->origins[i], o, sizeof *o); i = (i + 1) & (p->room - 1))
		;
	return &p->origins[i];
}

static int make_room(struct peers *p)
{
	struct peers more = *p;
	size_t i;

	if (2 * p->used < p->room)
		return 1;
	more.room = p->room ? 2 * p->room : 64;
	more.origins = weft_take(WEFT_FOR_CONNECTIONS, more.room * sizeof *more.origins);
	if (!more.origins)
		return 0;
	for (i = 0; i < p->room; i++)
		if (p->origins[i].family)
			*place(&more, &p->origins[i]) = p->origins[i];
	weft_give(WEFT_FOR_CONNECTIONS, p->origins);
	*p = more;
	return 1;
}

// know says whether something is known to be where a peer is, and has it so if it is to be.
static int know(struct peers *p, const struct origin *o, int invited, int introduced)
{
	int is;

	pthread_mutex_lock(&lock);
	is = p->room && place(p, o)->family;
	if (!is && (invited || (introduced && p->uninvited < MOST_UNINVITED)) && make_room(p)) {
		*place(p, o) = *o;
		p->used++;
		p->uninvited += !invited;
		is = 1;
	}
	pthread_mutex_unlock(&lock);
	return is;
}

// peers_of is what is known of a descriptor, or NULL. It stays until that is closed.
static struct peers *peers_of(int fd)
{
	struct peers *p = fd >= 0 && fd < MOST_DESCRIPTORS ?
				  __atomic_load_n(&descriptors[fd], __ATOMIC_ACQUIRE) : NULL;

	return p && p->inode == weft_inode(fd) ? p : NULL;
}

static void forget(int fd)
{
	struct peers *p = __atomic_exchange_n(&descriptors[fd], NULL, __ATOMIC_ACQ_REL);

	if (p)
		weft_give(WEFT_FOR_CONNECTIONS, p->origins);
	weft_give(WEFT_FOR_CONNECTIONS, p);
}

static int call_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	int ret = bind(fd, address, length), kind = 0;
	socklen_t n = sizeof kind;
	struct peers *p;

	if (ret || !opening || getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &n) || kind != SOCK_DGRAM)
		return ret;
	p = fd < MOST_DESCRIPTORS ? weft_take(WEFT_FOR_CONNECTIONS, sizeof *p) : NULL;
	if (!p) {
		errno = EMFILE;
		return -1;
	}
	p->inode = weft_inode(fd);
	forget(fd);
	__atomic_store_n(&descriptors[fd], p, __ATOMIC_RELEASE);
	return 0;
}

static int call_close(int fd)
{
	if (peers_of(fd))
		forget(fd);
	return close(fd);
}

static void invite(int fd, const void *address, size_t length)
{
	struct peers *p = address ? peers_of(fd) : NULL;
	struct origin o;

	if (p && origin_of(address, length, &o))
		know(p, &o, 1, 0);
}

static ssize_t call_sendto(int fd, const void *buf, size_t length, int flags,
			   const struct sockaddr *to, socklen_t to_length)
{
	invite(fd, to, to_length);
	return sendto(fd, buf, length, flags, to, to_length);
}

static ssize_t call_sendmsg(int fd, const struct msghdr *m, int flags)
{
	invite(fd, m->msg_name, m->msg_namelen);
	return sendmsg(fd, m, flags);
}

// is_peer says whether a datagram is a peer's.
static int is_peer(struct peers *p, const struct msghdr *m, size_t length)
{
	struct introduction said;
	struct origin from, name;
	size_t i, n, there = 0;
	int introduces;

	for (i = 0; i < m->msg_iovlen && there < length && there < sizeof said; i++) {
		n = m->msg_iov[i].iov_len;
		n = n < length - there ? n : length - there;
		n = n < sizeof said - there ? n : sizeof said - there;
		memcpy((char *)&said + there, m->msg_iov[i].iov_base, n);
		there += n;
	}
	if (there < sizeof said.head || said.head.version != VERSION || said.head.kind > LAST_KIND ||
	    !origin_of(m->msg_name, m->msg_namelen, &from))
		return 0;
	introduces = said.head.kind == INTRODUCES;
	if (introduces && (length != sizeof said || !origin_of(said.name, sizeof said.name, &name)))
		return 0;
	return know(p, &from, 0, introduces && !memcmp(&from, &name, sizeof from));
}

static ssize_t call_recvmsg(int fd, struct msghdr *m, int flags)
{
	struct sockaddr_storage from;
	struct peers *p = peers_of(fd);
	struct msghdr own;
	ssize_t n;
	int i;

	if (!p)
		return recvmsg(fd, m, flags);
	for (i = 0; i < MOST_DROPPED; i++) {
		own = *m;
		own.msg_name = &from;
		own.msg_namelen = sizeof from;
		n = recvmsg(fd, &own, flags);
		if (n < 0)
			return n;
		if (!is_peer(p, &own, (size_t)n))
			continue;
		if (m->msg_name) {
			if (m->msg_namelen > own.msg_namelen)
				m->msg_namelen = own.msg_namelen;
			memcpy(m->msg_name, &from, m->msg_namelen);
		}
		m->msg_flags = own.msg_flags;
		m->msg_controllen = own.msg_controllen;
		return n;
	}
	errno = EAGAIN;
	return -1;
}

int weft_datagram_endpoint(struct fid_domain *domain, struct fi_info *info, uint64_t mr_mode,
			   uint64_t receive_caps, struct fid_ep **ep)
{
	int ret;

	opening = 1;
	ret = weft_endpoint(domain, info, mr_mode, receive_caps, ep);
	opening = 0;
	return ret;
}

int weft_datagram_enable(struct fid_ep *ep)
{
	int ret;

	opening = 1;
	ret = weft_enable(ep);
	opening = 0;
	return ret;
}

static int ret = -1;

static void doubt(void)
{
	static const struct weft_call ours[] = {
		{ "bind", (void (*)(void))call_bind },
		{ "close", (void (*)(void))call_close },
		{ "sendto", (void (*)(void))call_sendto },
		{ "sendmsg", (void (*)(void))call_sendmsg },
		{ "recvmsg", (void (*)(void))call_recvmsg },
	};

	if (weft_replace_calls(ours, 5) == 5)
		ret = 0;
}

int weft_doubt_datagrams(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, doubt);
	return ret;
}
