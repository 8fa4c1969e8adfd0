//go:build linux

#include "pause.h"

#include <time.h>

// Instructions of WEFT_REST_MOST_NS, at most REST_LIMIT.
#define REST_LIMIT 256

static uint32_t most = 1;

static int64_t clock_ns;

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

void weft_rest(uint32_t ns)
{
	uint32_t instructions = ns * most / WEFT_REST_MOST_NS;

	do
		relax();
	while (instructions-- > 1);
}

int64_t weft_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

int64_t weft_since(int64_t start)
{
	return weft_now() - start - clock_ns;
}

// What one instruction takes differs by a factor of ten between processors, and
// so does the clock. The shortest of some measurements is the one that nothing got
// in the way of.
__attribute__((constructor)) static void measure(void)
{
	const int count = 128, tries = 4;
	int64_t best = 0, instructions;

	for (int i = 0; i < tries; i++) {
		int64_t start = weft_now(), between = weft_now(), took;

		for (int k = 0; k < count; k++)
			relax();
		took = weft_now() - between;
		if (i == 0 || took < best)
			best = took;
		if (i == 0 || between - start < clock_ns)
			clock_ns = between - start;
	}
	if (best < 1)
		best = 1;
	instructions = (int64_t)WEFT_REST_MOST_NS * count / best;
	if (instructions < 1)
		instructions = 1;
	if (instructions > REST_LIMIT)
		instructions = REST_LIMIT;
	most = (uint32_t)instructions;
}
