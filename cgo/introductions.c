//go:build linux

#define _GNU_SOURCE
#include "introductions.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// An endpoint of sockets takes what comes by a connection for messages. Whoever calls says first at
// which address it is called itself. Of somebody else's words those with the number of the protocol
// at the place of a head are waited on: then nothing else comes to any endpoint of the domain. So
// the first words of a connection are looked at before sockets gets them, and it gets the end instead
// of others.

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
#define INTRODUCES 12
#define LAST_KIND 16
#define LONGEST ((uint64_t)1 << 48)

// A descriptor for as long as it is the same file. The provider has room for as many connections
// (fabric/connections_room.go), and what a closed one had is the next one's.
#define MOST 65536
static struct { uint64_t inode; uint32_t state; } known[MOST];
enum { UNKNOWN, LISTENS, CALLS, ANSWERS };

static _Thread_local int listening;

static uint64_t inode_of(int fd)
{
	struct stat its;

	return fstat(fd, &its) ? 0 : (uint64_t)its.st_ino;
}

static uint32_t state_of(int fd)
{
	uint32_t state;

	if (fd < 0 || fd >= MOST)
		return UNKNOWN;
	state = __atomic_load_n(&known[fd].state, __ATOMIC_ACQUIRE);
	return state != UNKNOWN && known[fd].inode == inode_of(fd) ? state : UNKNOWN;
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
	known[fd].inode = inode_of(fd);
	__atomic_store_n(&known[fd].state, state, __ATOMIC_RELEASE);
	return 0;
}

int weft_enable_listening(struct fid_ep *ep)
{
	int ret;

	listening = 1;
	ret = weft_enable(ep);
	listening = 0;
	return ret;
}

void weft_is_listened_at(int fd)
{
	if (listening)
		begin(fd, LISTENS, 0);
}

int weft_accept_introduced(int fd, struct sockaddr *from, socklen_t *from_length)
{
	int caller, of_sockets = state_of(fd) == LISTENS;

	do {
		caller = accept(fd, from, from_length);
	} while (of_sockets && caller >= 0 &&
		 begin(caller, CALLS, sizeof(struct introduction)) && !close(caller));
	return caller;
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

static int is_peer(uint32_t state, const struct introduction *said)
{
	const struct head *h = &said->head;
	uint64_t length = be64toh(h->length);

	if (h->version != VERSION || h->reserved)
		return 0;
	if (state == ANSWERS)
		return h->kind <= LAST_KIND && length >= sizeof *h && length < LONGEST;
	return h->kind == INTRODUCES && length == sizeof *said &&
	       (said->family == AF_INET || said->family == AF_INET6);
}

ssize_t weft_recv_introduced(int fd, void *buf, size_t length, int flags)
{
	struct introduction said;
	struct pollfd end = { .fd = fd, .events = POLLRDHUP };
	uint32_t state = state_of(fd);
	size_t all = state == CALLS ? sizeof said : sizeof said.head;
	ssize_t n;

	if (state != CALLS && state != ANSWERS)
		return recv(fd, buf, length, flags);
	n = recv(fd, &said, all, MSG_PEEK | MSG_DONTWAIT);
	if (n <= 0)
		return n;
	if (n < (ssize_t)all && said.head.version == VERSION && poll(&end, 1, 0) == 0) {
		errno = EAGAIN;
		return -1;
	}
	if (n < (ssize_t)all || !is_peer(state, &said)) {
		shutdown(fd, SHUT_RDWR);
		return 0;
	}
	__atomic_store_n(&known[fd].state, UNKNOWN, __ATOMIC_RELAXED);
	wake_at(fd, 1);
	return recv(fd, buf, length, flags);
}
