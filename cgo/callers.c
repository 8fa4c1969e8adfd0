//go:build linux

#define _GNU_SOURCE
#include "callers.h"
#include "calls.h"
#include "introductions.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

// A connected endpoint of sockets believes whoever calls it, or answers. Bytes that are not those of
// a peer have its thread follow a null, or write behind its memory, and one that says the half of it
// has the thread wait, with all others. So libfabric gets other functions to listen, accept, connect
// and receive with. Who calls is accepted when all of a request is there; of what else comes by such
// a connection, sockets sees what can follow, and the end instead of anything else.

// A message begins so (struct sock_conn_hdr); a request has more before its data.
struct head {
	uint8_t type, reserved[3];
	uint16_t port, data_length; // of the network's order
};

enum { REQUEST, ACCEPTED, REJECTED, ENDED };
#define REQUEST_LENGTH 64
#define MOST_DATA 256

// How many callers have not said all yet, and how long the rest of an answer may take.
#define MOST_CALLERS 128
#define PATIENCE_MS 2000

// What is known of a descriptor, for as long as it is the same file.
struct line {
	enum { UNKNOWN, LISTENS, REQUESTS, ANSWERS, OPEN } state;
	uint32_t left; // of the message
	uint64_t inode;
	int real; // what a listening one really is
	const struct fid_pep *pep;
	int *callers; // MOST_CALLERS, of one that has listened
};

#define MOST_LINES 65536
static struct line *lines[MOST_LINES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// For whom the thread listens, and whether it connects.
static _Thread_local const struct fid_pep *listening;
static _Thread_local int connecting;

// line_of returns what is known of a descriptor, or NULL.
static struct line *line_of(int fd)
{
	struct line *l = fd >= 0 && fd < MOST_LINES ? __atomic_load_n(&lines[fd], __ATOMIC_ACQUIRE) : NULL;

	return l && l->state != UNKNOWN && l->inode == weft_inode(fd) ? l : NULL;
}

// know makes what is known of one. The memory stays, for the next file of that number.
static struct line *know(int fd)
{
	struct line *l = NULL;

	if (fd < 0 || fd >= MOST_LINES)
		return NULL;
	pthread_mutex_lock(&lock);
	l = lines[fd];
	if (!l)
		l = calloc(1, sizeof *l);
	if (l) {
		l->state = UNKNOWN;
		l->left = 0;
		l->inode = weft_inode(fd);
		__atomic_store_n(&lines[fd], l, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return l;
}

static int wake_at(int fd, int bytes)
{
	return setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

static int call_connect(int fd, const struct sockaddr *to, socklen_t length)
{
	struct line *l;
	int ret;

	if (!connecting)
		return weft_is_dialed(fd, to) ? -1 : connect(fd, to, length);
	ret = connect(fd, to, length);
	if (ret)
		return ret;
	l = know(fd);
	if (!l || wake_at(fd, sizeof(struct head))) {
		errno = EMFILE;
		return -1;
	}
	l->state = ANSWERS;
	return 0;
}

// screen has something else in the place of a listening descriptor, with what it really is in it.
static int screen(int fd)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct line *l;
	int set = epoll_create1(EPOLL_CLOEXEC), ret = -1;
	int real = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	e.data.fd = real;
	if (set >= 0 && real >= 0 && !fcntl(real, F_SETFL, O_NONBLOCK) &&
	    !epoll_ctl(set, EPOLL_CTL_ADD, real, &e) && dup3(set, fd, O_CLOEXEC) == fd) {
		l = know(fd);
		if (l && !l->callers)
			l->callers = malloc(MOST_CALLERS * sizeof *l->callers);
		if (l && l->callers) {
			l->real = real;
			l->pep = listening;
			memset(l->callers, -1, MOST_CALLERS * sizeof *l->callers);
			__atomic_store_n(&l->state, LISTENS, __ATOMIC_RELEASE);
			ret = 0;
		}
	}
	if (set >= 0)
		close(set);
	if (ret && real >= 0)
		close(real);
	return ret;
}

static int call_listen(int fd, int backlog)
{
	int ret = listen(fd, backlog);

	if (!ret && !listening)
		weft_is_listened_at(fd);
	if (ret || !listening)
		return ret;
	if (screen(fd)) {
		errno = EMFILE;
		return -1;
	}
	return 0;
}

int weft_listens(struct fid_pep *pep)
{
	int ret;

	listening = pep;
	ret = fi_listen(pep);
	listening = NULL;
	return ret;
}

int weft_sets_name(struct fid_pep *pep, const void *address, uint64_t length)
{
	int ret;

	listening = pep;
	ret = fi_setname(&pep->fid, (void *)address, length);
	listening = NULL;
	return ret;
}

int weft_connects(struct fid_ep *ep, const void *address, const void *data, uint64_t length)
{
	int ret;

	connecting = 1;
	ret = fi_connect(ep, address, data, length);
	connecting = 0;
	return ret;
}

void weft_hang_up(const struct fid_pep *pep)
{
	struct line *l;
	int fd, i;

	pthread_mutex_lock(&lock);
	for (fd = 0; fd < MOST_LINES; fd++) {
		l = lines[fd];
		if (!l || l->state != LISTENS || l->pep != pep)
			continue;
		l->state = UNKNOWN;
		close(l->real);
		for (i = 0; i < MOST_CALLERS; i++)
			if (l->callers[i] >= 0)
				close(l->callers[i]);
	}
	pthread_mutex_unlock(&lock);
}

static void drop(struct line *l, int i)
{
	close(l->callers[i]); // which takes it out of the set
	l->callers[i] = -1;
}

// admit has one more caller looked at, in the place of the first one if there are too many.
static void admit(struct line *l, int set, int fd)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP, .data.fd = fd };
	int i;

	for (i = 0; i < MOST_CALLERS && l->callers[i] >= 0; i++)
		;
	if (i == MOST_CALLERS) {
		drop(l, 0);
		memmove(l->callers, l->callers + 1, (MOST_CALLERS - 1) * sizeof *l->callers);
		i = MOST_CALLERS - 1;
	}
	if (wake_at(fd, REQUEST_LENGTH) || epoll_ctl(set, EPOLL_CTL_ADD, fd, &e))
		close(fd);
	else
		l->callers[i] = fd;
}

// has_said says whether a caller has said all of a request: 0, not yet; -1, it never will.
static int has_said(int fd, uint32_t events, uint32_t *length)
{
	char said[REQUEST_LENGTH + MOST_DATA];
	sa_family_t family = AF_INET; // of the caller's address, which is next
	struct head h;
	ssize_t n = recv(fd, said, sizeof said, MSG_PEEK | MSG_DONTWAIT);

	if (n < (ssize_t)sizeof h)
		return n < 0 && errno == EAGAIN && !(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) ? 0 : -1;
	memcpy(&h, said, sizeof h);
	if (n >= (ssize_t)(sizeof h + sizeof family))
		memcpy(&family, said + sizeof h, sizeof family);
	*length = REQUEST_LENGTH + (uint32_t)(ntohs(h.data_length));
	if (h.type != REQUEST || *length > sizeof said || (family != AF_INET && family != AF_INET6))
		return -1;
	if (n >= (ssize_t)*length)
		return 1;
	return events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) || wake_at(fd, (int)*length) ? -1 : 0;
}

static int call_accept(int fd, struct sockaddr *from, socklen_t *from_length)
{
	struct line *l = line_of(fd), *of;
	struct epoll_event events[32];
	uint32_t length;
	int i, k, n, said, caller, found = -1;

	if (!l || l->state != LISTENS)
		return weft_accept_introduced(fd, from, from_length);
	n = epoll_wait(fd, events, 32, 0);
	for (k = 0; k < n && found < 0; k++) {
		if (events[k].data.fd == l->real) {
			while ((caller = accept4(l->real, NULL, NULL, SOCK_CLOEXEC)) >= 0)
				admit(l, fd, caller);
			// One that was shut down would not rest.
			if (errno == EINVAL || errno == EBADF)
				epoll_ctl(fd, EPOLL_CTL_DEL, l->real, NULL);
			continue;
		}
		for (i = 0; i < MOST_CALLERS && l->callers[i] != events[k].data.fd; i++)
			;
		if (i == MOST_CALLERS)
			continue;
		said = has_said(l->callers[i], events[k].events, &length);
		if (said == 0)
			continue;
		of = said > 0 ? know(l->callers[i]) : NULL;
		if (!of || epoll_ctl(fd, EPOLL_CTL_DEL, l->callers[i], NULL) ||
		    wake_at(l->callers[i], sizeof(struct head))) {
			drop(l, i);
			continue;
		}
		of->left = length;
		of->state = REQUESTS;
		found = l->callers[i];
		l->callers[i] = -1;
	}
	if (found < 0)
		errno = EAGAIN;
	return found;
}

// is_there says whether so many bytes have come, or do soon.
static int is_there(int fd, size_t length)
{
	char said[sizeof(struct head) + MOST_DATA];
	struct pollfd more = { .fd = fd, .events = POLLIN };
	int there = recv(fd, said, length, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)length;

	if (there)
		return 1;
	there = !wake_at(fd, (int)length) && poll(&more, 1, PATIENCE_MS) == 1 &&
		recv(fd, said, length, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)length;
	wake_at(fd, sizeof(struct head));
	return there;
}

// begins looks at the beginning of a message, and says whether it may come by the connection, and
// is there. Of half an answer sockets frees twice what it has.
static int begins(int fd, struct line *l)
{
	struct head h;
	size_t length;

	if (recv(fd, &h, sizeof h, MSG_PEEK | MSG_DONTWAIT) != sizeof h)
		return 0;
	length = sizeof h + ntohs(h.data_length);
	if (h.type == ENDED)
		length = sizeof h;
	else if (l->state != ANSWERS || (h.type != ACCEPTED && h.type != REJECTED) ||
		 length > sizeof h + MOST_DATA)
		return 0;
	l->left = (uint32_t)length;
	return is_there(fd, length);
}

static ssize_t call_recv(int fd, void *buf, size_t length, int flags)
{
	struct line *l = line_of(fd);
	ssize_t n;

	if (!l || l->state == LISTENS)
		return weft_recv_introduced(fd, buf, length, flags);
	if (l->left == 0 && !begins(fd, l)) {
		l->left = 0;
		return 0;
	}
	n = recv(fd, buf, length < l->left ? length : l->left, flags);
	if (n > 0)
		l->left -= (uint32_t)n;
	if (l->left == 0)
		l->state = OPEN;
	return n;
}

static int ret = -1;

static void doubt(void)
{
	static const struct weft_call ours[] = {
		{ "listen", (void (*)(void))call_listen },
		{ "connect", (void (*)(void))call_connect },
		{ "accept", (void (*)(void))call_accept },
		{ "recv", (void (*)(void))call_recv },
	};

	if (weft_replace_calls(ours, 4) == 4)
		ret = 0;
}

int weft_doubt_callers(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, doubt);
	return ret;
}
