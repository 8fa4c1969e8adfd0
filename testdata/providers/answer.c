#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

void say(const char *format, ...)
{
	size_t used = strlen(shared->answer);
	va_list args;

	va_start(args, format);
	vsnprintf(shared->answer + used, ANSWER - used, format, args);
	va_end(args);
}

// What a call returned: 0, or the name of the error with its sign.
const char *code(long ret)
{
	static char text[4][96];
	static int next;
	char *t = text[next++ % 4];

	if (ret >= 0)
		snprintf(t, sizeof *text, "%ld", ret);
	else
		snprintf(t, sizeof *text, "%ld (%s)", ret, fi_strerror((int)-ret));
	return t;
}

void must(const char *call, long ret)
{
	if (ret >= 0)
		return;
	say("(no answer: %s returns %s)", call, code(ret));
	_exit(0);
}

double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
