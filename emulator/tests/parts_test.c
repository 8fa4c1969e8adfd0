/* The parts that need no device: timers, decisions, faults, copying memory. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "decisions.h"
#include "faults.h"
#include "memory.h"
#include "settings.h"
#include "timers.h"

enum { TIMERS = 1000 };

static void test_timers_come_in_order(void)
{
	static struct timer timers[TIMERS];
	struct timers all = {0};
	struct faults random;
	uint64_t last = 0;
	int count = 0;

	faults_seed(&random, 1, 0);
	for (int i = 0; i < TIMERS; i++)
		CHECK(timers_set(&all, &timers[i], (uint64_t)i * 7919 % TIMERS));
	/* A third is moved, a third taken out. */
	for (int i = 0; i < TIMERS; i += 3)
		CHECK(timers_set(&all, &timers[i], (uint64_t)i * 104729 % (2 * TIMERS)));
	for (int i = 1; i < TIMERS; i += 3)
		timers_cancel(&all, &timers[i]);
	timers_cancel(&all, &timers[1]);
	CHECK(!timers_take(&all, 0) || timers_next(&all) != UINT64_MAX);
	while (timers_next(&all) != UINT64_MAX) {
		uint64_t due = timers_next(&all);
		struct timer *timer;

		CHECK(due >= last);
		CHECK(due == 0 || !timers_take(&all, due - 1));
		timer = timers_take(&all, due);
		CHECK(timer && timer->at == due && !timer->place);
		CHECK((timer - timers) % 3 != 1);
		last = due;
		count++;
	}
	CHECK(count >= TIMERS - (TIMERS + 1) / 3 - 1);
	timers_free(&all);
}

static void test_decisions_are_remembered_until_known(void)
{
	static struct decisions all;
	/* Sequences wrap. */
	const uint32_t first = UINT32_MAX - 3;

	decisions_start(&all, first);
	CHECK_EQUAL(decisions_look(&all, first), DECISION_NONE);
	decisions_make(&all, first, 0);
	decisions_make(&all, first + 5, 10);
	CHECK_EQUAL(decisions_look(&all, first), 0);
	CHECK_EQUAL(decisions_look(&all, first + 5), 10);
	CHECK_EQUAL(decisions_look(&all, first + 4), DECISION_NONE);
	CHECK_EQUAL(decisions_look(&all, first - 1), DECISION_KNOWN);
	CHECK_EQUAL(decisions_look(&all, first + WIRE_WINDOW - 1), DECISION_NONE);
	CHECK_EQUAL(decisions_look(&all, first + WIRE_WINDOW), DECISION_OUTSIDE);

	decisions_advance(&all, first + 3);
	CHECK_EQUAL(decisions_look(&all, first), DECISION_KNOWN);
	CHECK_EQUAL(decisions_look(&all, first + 5), 10);
	/* A packet that was overtaken has an older floor. */
	decisions_advance(&all, first);
	CHECK_EQUAL(decisions_look(&all, first), DECISION_KNOWN);
	/* The place is another sequence's now. */
	CHECK_EQUAL(decisions_look(&all, first + WIRE_WINDOW), DECISION_NONE);
	decisions_advance(&all, first + 100 * WIRE_WINDOW);
	CHECK_EQUAL(decisions_look(&all, first + 5), DECISION_KNOWN);
	CHECK_EQUAL(decisions_look(&all, first + 100 * WIRE_WINDOW), DECISION_NONE);
}

static void test_faults_are_the_same_for_the_same_seed(void)
{
	struct in_addr nobody = {0};
	struct faults one, same, other;
	int lost = 0, differ = 0;

	faults_seed(&one, 42, 0);
	faults_seed(&same, 42, 0);
	faults_seed(&other, 42, 1);
	for (int i = 0; i < 10000; i++) {
		bool verdict = faults_lose(&one, nobody, 0);

		CHECK_EQUAL(verdict, faults_lose(&same, nobody, 0));
		differ += verdict != faults_lose(&other, nobody, 0);
		lost += verdict;
	}
	/* WEFT_EFA_DROP=25, below. */
	CHECK(lost > 2200 && lost < 2800);
	CHECK(differ > 1000);
}

static void test_copying_ends_with_an_error_where_memory_is_not(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *copy = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED && copy != MAP_FAILED);
	memset(memory, 7, 3 * page);
	CHECK(memory_copy(copy + 1, memory, 3 * page - 1));
	CHECK(copy[0] == 0 && copy[1] == 7 && copy[3 * page - 1] == 7);
	CHECK(memory_present(memory, 3 * page));
	CHECK(!munmap(memory + page, page));
	CHECK(!memory_present(memory, 3 * page));
	CHECK(memory_present(memory, page));
	CHECK(!memory_copy(copy, memory, 2 * page));
	CHECK(!memory_copy(memory, copy, 2 * page));
	CHECK(memory_copy(copy, memory, page));
	/* What may not be written. */
	CHECK(!mprotect(memory, page, PROT_READ));
	CHECK(!memory_copy(memory, copy, 1));
	CHECK(!memory_present((void *)UINTPTR_MAX, 2));
	munmap(memory, page);
	munmap(memory + 2 * page, page);
	munmap(copy, 3 * page);
}

int main(void)
{
	setenv("WEFT_EFA_DROP", "25", 1);
	CHECK(settings()->valid);
	RUN(test_timers_come_in_order);
	RUN(test_decisions_are_remembered_until_known);
	RUN(test_faults_are_the_same_for_the_same_seed);
	RUN(test_copying_ends_with_an_error_where_memory_is_not);
	return 0;
}
