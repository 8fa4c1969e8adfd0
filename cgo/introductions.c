//go:build linux

#define _GNU_SOURCE
#include "callers.h"
#include "calls.h"
#include "connection.h"
#include "introductions.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

// An endpoint of sockets takes what comes by a connection for messages. Of somebody else's words
// those with the number of the protocol at the place of a head are waited on: then nothing else
// comes to any endpoint of the domain. So the first words of a connection are looked at before
// sockets gets them, and it gets the end instead of others. Whoever calls says at which address it is
// called itself, but one with several contexts may have something to say before.

// A message begins so (struct sock_msg_hdr).
struct head {
	uint8_t version, kind, context, parts;
	uint16_t entry, reserved;
	uint64_t flags, length; // of the network's order, and with the head
};

struct introduction {
	struct head head;
	sa_family_t family; // of the address, which is the rest
	char rest[46];
};

#define VERSION 2
// Its kinds: messages, accesses, and an introduction.
enum { SEND, TAGGED_SEND, WRITE = 3, READ = 6, ATOMIC = 9, INTRODUCES = 12, LAST_KIND = 16 };
#define LONGEST ((uint64_t)1 << 48)

// A descriptor for as long as it is the same file. The provider has room for more connections
// (fabric/connections_room.go), and what a closed one had is the next one's.
#define MOST 65536
static struct { uint64_t inode; uint32_t state; } known[MOST];
enum { UNKNOWN, LISTENS, CALLS, ANSWERS };

// Those that have called last. So many may say nothing.
#define MOST_SILENT 4096
static struct caller { int fd; uint64_t inode; } callers[MOST_SILENT];
static unsigned next_caller;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define PAUSE_NS 10000000
// How long who is hung up on is waited for, at most and the last time, until sockets has closed it.
#define MOST_CLOSING_NS 30000000

static _Thread_local int listening;

static uint64_t known_inode(int fd)
{
	return __atomic_load_n(&known[fd].inode, __ATOMIC_RELAXED);
}

static uint32_t state_of(int fd)
{
	uint32_t state;

	if (fd < 0 || fd >= MOST)
		return UNKNOWN;
	state = __atomic_load_n(&known[fd].state, __ATOMIC_ACQUIRE);
	return state != UNKNOWN && known_inode(fd) == weft_inode(fd) ? state : UNKNOWN;
}

static int wake_at(int fd, size_t bytes)
{
	int n = (int)bytes;

	return setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof n);
}

// begin says of a descriptor what it is, which has it wake only when so much has come.
static int begin(int fd, uint32_t state, size_t bytes)
{
	if (fd < 0 || fd >= MOST || (bytes && wake_at(fd, bytes)))
		return -1;
	__atomic_store_n(&known[fd].inode, weft_inode(fd), __ATOMIC_RELAXED);
	__atomic_store_n(&known[fd].state, state, __ATOMIC_RELEASE);
	return 0;
}

#define LISTENING(call)                                                               \
	do {                                                                          \
		int ret;                                                              \
                                                                                      \
		listening = 1;                                                        \
		ret = call;                                                           \
		listening = 0;                                                        \
		return ret;                                                           \
	} while (0)

int weft_enable_listening(struct fid_ep *ep)
{
	LISTENING(weft_enable(ep));
}

int weft_connect_listening(struct fid_ep *ep, const void *address, const void *data, uint64_t length)
{
	LISTENING(weft_connects(ep, address, data, length));
}

int weft_accept_listening(struct fid_ep *ep, const void *data, uint64_t length)
{
	LISTENING(weft_accept(ep, data, length));
}

int weft_name_listening(struct fid_ep *ep, const void *address, uint64_t length)
{
	LISTENING(weft_set_name(&ep->fid, address, length));
}

void weft_is_listened_at(int fd)
{
	if (listening)
		begin(fd, LISTENS, 0);
}

// hang_up ends a connection of a caller that has said nothing, if it still is one, and its descriptor
// not another one's. sockets then closes it.
static int hang_up(struct caller *c)
{
	int is = c->inode && state_of(c->fd) == CALLS && known_inode(c->fd) == c->inode &&
		 !shutdown(c->fd, SHUT_RDWR);

	c->inode = 0;
	return is;
}

// hear has one more caller, in the place of the one that has called as many before as may say nothing:
// of the descriptors, half are for others. Callers that come faster than another thread closes those
// that were hung up on would take more.
static void hear(int fd)
{
	struct rlimit descriptors;
	struct timespec soon = { .tv_nsec = 50000 };
	struct caller former;
	unsigned most = MOST_SILENT;
	int closing;

	if (!getrlimit(RLIMIT_NOFILE, &descriptors) && descriptors.rlim_cur / 2 < most)
		most = (unsigned)(descriptors.rlim_cur / 2) + 1;
	pthread_mutex_lock(&lock);
	next_caller = next_caller < most ? next_caller : 0;
	former = callers[next_caller];
	closing = hang_up(&callers[next_caller]);
	callers[next_caller] = (struct caller){ fd, known_inode(fd) };
	next_caller++;
	pthread_mutex_unlock(&lock);
	for (; closing && soon.tv_nsec < MOST_CLOSING_NS && weft_inode(former.fd) == former.inode; soon.tv_nsec *= 2)
		nanosleep(&soon, NULL);
}

// make_way hangs up on the silent one that has called first.
static void make_way(void)
{
	unsigned i;
	int made = 0;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MOST_SILENT && !made; i++)
		made = hang_up(&callers[(next_caller + i) % MOST_SILENT]);
	pthread_mutex_unlock(&lock);
}

int weft_accept_introduced(int fd, struct sockaddr *from, socklen_t *from_length)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int caller, error, of_sockets = state_of(fd) == LISTENS;

	for (;;) {
		caller = accept4(fd, from, from_length, SOCK_CLOEXEC);
		if (!of_sockets)
			return caller;
		if (caller < 0) {
			error = errno;
			if (error == EMFILE || error == ENFILE) {
				make_way();
				// The thread would ask again at once, until there is a descriptor.
				nanosleep(&pause, NULL);
			}
			errno = error;
			return caller;
		}
		if (!begin(caller, CALLS, sizeof(struct head))) {
			hear(caller);
			return caller;
		}
		close(caller);
	}
}

// is_new says whether a descriptor is as sockets has it before it connects; others' have an option.
static int is_new(int fd)
{
	int no_delay = 1, reuse = 1;
	socklen_t n = sizeof(int), k = sizeof(int);

	return !getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &n) &&
	       !getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, &k) && !no_delay && !reuse;
}

int weft_is_dialed(int fd, const struct sockaddr *to)
{
	if ((to->sa_family != AF_INET && to->sa_family != AF_INET6) || !is_new(fd) ||
	    !begin(fd, ANSWERS, sizeof(struct head)))
		return 0;
	errno = EMFILE;
	return -1;
}

// is_peer says whether a peer says that first.
static int is_peer(uint32_t state, const struct introduction *said)
{
	const struct head *h = &said->head;
	const uint64_t length = be64toh(h->length);

	if (h->version != VERSION || h->reserved || length < sizeof *h || length >= LONGEST)
		return 0;
	if (state == ANSWERS)
		return h->kind <= LAST_KIND;
	switch (h->kind) {
	case SEND:
	case TAGGED_SEND:
	case WRITE:
	case READ:
	case ATOMIC:
		return 1;
	case INTRODUCES:
		return length == sizeof *said && (said->family == AF_INET || said->family == AF_INET6);
	}
	return 0;
}

ssize_t weft_recv_introduced(int fd, void *buf, size_t length, int flags)
{
	struct introduction said;
	struct pollfd end = { .fd = fd, .events = POLLRDHUP };
	uint32_t state = state_of(fd);
	size_t all = sizeof said.head;
	ssize_t n;

	if (state != CALLS && state != ANSWERS)
		return recv(fd, buf, length, flags);
	n = recv(fd, &said, sizeof said, MSG_PEEK | MSG_DONTWAIT);
	// Another thread may have let these words through, and sockets have taken them.
	if (state_of(fd) != state)
		return recv(fd, buf, length, flags);
	if (n <= 0)
		return n;
	if (state == CALLS && n >= (ssize_t)all && said.head.kind == INTRODUCES)
		all = sizeof said;
	if (n < (ssize_t)all && said.head.version == VERSION && poll(&end, 1, 0) == 0) {
		// Once more: fabric has sockets of a provider wake at one byte (makeRoom).
		wake_at(fd, all);
		errno = EAGAIN;
		return -1;
	}
	if (n < (ssize_t)all || !is_peer(state, &said)) {
		shutdown(fd, SHUT_RDWR);
		return 0;
	}
	__atomic_store_n(&known[fd].state, UNKNOWN, __ATOMIC_RELEASE);
	wake_at(fd, 1);
	return recv(fd, buf, length, flags);
}
