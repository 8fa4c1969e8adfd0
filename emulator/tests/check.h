/* A test ends at its first check that fails. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

/* CHECK_EQUAL is for numbers. */
#define CHECK_EQUAL(got, want)                                                                    \
	do {                                                                                      \
		long long got_ = (long long)(got), want_ = (long long)(want);                     \
		if (got_ != want_) {                                                              \
			fprintf(stderr, "%s:%d: %s is %lld, want %lld\n", __FILE__, __LINE__, #got, got_, want_); \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

/* RUN names a test and runs it. */
#define RUN(test)                              \
	do {                                   \
		fprintf(stderr, "%s\n", #test); \
		test();                        \
	} while (0)

#endif
