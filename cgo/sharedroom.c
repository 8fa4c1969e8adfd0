//go:build linux

#define _GNU_SOURCE
#include "sharedroom.h"
#include "calls.h"
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static __thread int room_kept = -1;

// At a time. A signal has the kernel give back what it was at.
#define PIECE ((off_t)1 << 20)

// own_truncate makes a file as long as that, and has room for it: libfabric has no other files of which
// it says how long they are.
static int own_truncate(int fd, off_t length)
{
	off_t at = 0;
	int err;

	if (ftruncate(fd, length))
		return -1;
	if (room_kept >= 0 && ftruncate(room_kept, 0))
		return -1;
	while (at < length) {
		off_t piece = length - at < PIECE ? length - at : PIECE;

		err = posix_fallocate(fd, at, piece);
		if (err && err != EINTR) {
			errno = err;
			return -1;
		}
		if (!err)
			at += piece;
	}
	return 0;
}

static int ret = -1;

static void reserve(void)
{
	static const struct weft_call ours[] = {
		{ "ftruncate", (void (*)(void))own_truncate },
	};

	if (weft_replace_calls(ours, 1))
		ret = 0;
}

int weft_reserve_shared(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, reserve);
	return ret;
}

int weft_enable_in_room(struct fid_ep *ep, int room)
{
	int err;

	room_kept = room;
	err = weft_enable(ep);
	room_kept = -1;
	return err;
}
