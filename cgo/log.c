//go:build linux

#include "log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_ext.h>

// Providers log from threads of their own and from calls that must not come
// back to Go: everything here stays in C.
static _Atomic int level = -1;

static int enabled(const struct fi_provider *prov, enum fi_log_level at,
		   enum fi_log_subsys subsys, uint64_t flags)
{
	(void)prov;
	(void)subsys;
	// A provider that FI_LOG_PROV leaves out stays out.
	return !(flags & FI_LOG_PROV_FILTERED) &&
	       (int)at <= atomic_load_explicit(&level, memory_order_relaxed);
}

// Messages that would come again and again come every two seconds.
static int ready(const struct fi_provider *prov, enum fi_log_level at,
		 enum fi_log_subsys subsys, uint64_t flags, uint64_t *showtime)
{
	struct timespec t;
	uint64_t now;

	if (!enabled(prov, at, subsys, flags))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
	if (now < *showtime)
		return 0;
	*showtime = now + 2000;
	return 1;
}

static void write_line(const struct fi_provider *prov, enum fi_log_level at,
		       enum fi_log_subsys subsys, const char *func, int line,
		       const char *message)
{
	char level_name[32] = "", subsys_name[32] = "";
	int saved = errno;

	fi_tostr_r(level_name, sizeof level_name, &at, FI_TYPE_LOG_LEVEL);
	fi_tostr_r(subsys_name, sizeof subsys_name, &subsys, FI_TYPE_LOG_SUBSYS);
	fprintf(stderr, "libfabric:%d:%s:%s:%s():%d<%s> %s", (int)getpid(),
		prov && prov->name ? prov->name : "core", subsys_name, func, line,
		level_name, message);
	errno = saved;
}

static struct fi_ops_log ops = {
	.size = sizeof ops,
	.enabled = enabled,
	.ready = ready,
	.log = write_line,
};

static struct fid_logging logging = { .ops = &ops };

int weft_log_import(void)
{
	int ret;

	weft_save_handlers();
	ret = fi_import_log((uint32_t)weft_highest_version(), 0, &logging);
	weft_restore_handlers();
	return ret;
}

void weft_log_level(int to)
{
	atomic_store_explicit(&level, to, memory_order_relaxed);
}
