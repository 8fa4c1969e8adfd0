#include "counters.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings.h"

static const char *const names[COUNTER_COUNT] = {
	[COUNTER_PACKETS_SENT] = "packets_sent",
	[COUNTER_PACKETS_RECEIVED] = "packets_received",
	[COUNTER_BYTES_SENT] = "bytes_sent",
	[COUNTER_BYTES_RECEIVED] = "bytes_received",
	[COUNTER_REORDERED] = "reordered",
	[COUNTER_DROPPED] = "dropped",
	[COUNTER_REFUSED] = "refused",
	[COUNTER_NOT_READY] = "not_ready",
	[COUNTER_REPEATED] = "repeated",
	[COUNTER_DUPLICATES] = "duplicates",
	[COUNTER_STRANGE] = "strange",
	[COUNTER_SENDS] = "sends",
	[COUNTER_READS] = "reads",
	[COUNTER_WRITES] = "writes",
	[COUNTER_RECEIVES] = "receives",
	[COUNTER_ERRORS] = "errors",
	[COUNTER_OVERRUNS] = "overruns",
};

static _Atomic uint64_t values[COUNTER_COUNT];
static _Atomic uint64_t carried[SETTINGS_DEVICES][2];

void counters_add(enum counter which, uint64_t n)
{
	atomic_fetch_add_explicit(&values[which], n, memory_order_relaxed);
}

void counters_carried(unsigned device, uint64_t sent, uint64_t received)
{
	atomic_fetch_add_explicit(&carried[device][0], sent, memory_order_relaxed);
	atomic_fetch_add_explicit(&carried[device][1], received, memory_order_relaxed);
	counters_add(COUNTER_BYTES_SENT, sent);
	counters_add(COUNTER_BYTES_RECEIVED, received);
}

uint64_t counters_read(enum counter which)
{
	return atomic_load_explicit(&values[which], memory_order_relaxed);
}

size_t counters_print(char *line, size_t room)
{
	size_t used = (size_t)snprintf(line, room, "weft-efa: pid=%d seed=%" PRIu64, (int)getpid(), settings()->seed);

	for (int i = 0; i < COUNTER_COUNT && used < room; i++)
		used += (size_t)snprintf(line + used, room - used, " %s=%" PRIu64, names[i], counters_read((enum counter)i));
	for (unsigned i = 0; settings()->devices > 1 && i < settings()->devices && used < room; i++)
		used += (size_t)snprintf(line + used, room - used, " device%u_sent=%" PRIu64 " device%u_received=%" PRIu64,
					 i, atomic_load_explicit(&carried[i][0], memory_order_relaxed), i,
					 atomic_load_explicit(&carried[i][1], memory_order_relaxed));
	if (used + 2 > room)
		used = room - 2;
	line[used++] = '\n';
	line[used] = 0;
	return used;
}

static void into_file(const char *folder, const char *line, size_t length)
{
	char path[4096], next[4112];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid()) >= (int)sizeof(path))
		return;
	/* A reader sees the old or the new line, never half of one. */
	snprintf(next, sizeof(next), "%s.new", path);
	fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	if (write(fd, line, length) == (ssize_t)length)
		rename(next, path);
	else
		unlink(next);
	close(fd);
}

void counters_report(int at_end)
{
	const char *where = settings()->counters;
	struct stat info;
	char line[COUNTERS_LINE];
	size_t length;

	if (!where)
		return;
	length = counters_print(line, sizeof(line));
	if (!stat(where, &info) && S_ISDIR(info.st_mode))
		into_file(where, line, length);
	else if (at_end)
		fwrite(line, 1, length, stderr);
}
