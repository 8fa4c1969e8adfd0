//go:build linux

#define _GNU_SOURCE
#include "inheritance.h"
#include "calls.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

// libfabric opens descriptors that a process inherits which the program starts: its ports would stay
// taken when they are closed here, and its peers not see that it has ended. To say so afterwards would
// be too late for a thread that starts one meanwhile, so other functions open them.

static int own_socket(int domain, int type, int protocol)
{
	return socket(domain, type | SOCK_CLOEXEC, protocol);
}

static int own_pair(int domain, int type, int protocol, int pair[2])
{
	return socketpair(domain, type | SOCK_CLOEXEC, protocol, pair);
}

static int own_accept(int fd, struct sockaddr *from, socklen_t *length)
{
	return accept4(fd, from, length, SOCK_CLOEXEC);
}

static int own_set(int size)
{
	(void)size; // which the kernel does not look at either
	return epoll_create1(EPOLL_CLOEXEC);
}

static int own_pipe(int ends[2])
{
	return pipe2(ends, O_CLOEXEC);
}

static int own_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list more;

	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	return open(path, flags | O_CLOEXEC, mode);
}

static int ret = -1;

static void keep(void)
{
	static const struct weft_call ours[] = {
		{ "socket", (void (*)(void))own_socket },
		{ "socketpair", (void (*)(void))own_pair },
		{ "accept", (void (*)(void))own_accept },
		{ "epoll_create", (void (*)(void))own_set },
		{ "pipe", (void (*)(void))own_pipe },
		{ "open", (void (*)(void))own_open },
	};

	if (weft_replace_calls(ours, sizeof ours / sizeof *ours))
		ret = 0;
}

int weft_keep_descriptors(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, keep);
	return ret;
}
