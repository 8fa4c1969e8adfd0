/* A program that forks. It is built without the sanitizers: a lock of theirs that
 * the device's thread holds at that moment would stay locked in the child. */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "rig.h"

static struct end a, b;

static void open_both(const struct options *options)
{
	end_open(&a, options);
	end_open(&b, options);
}

static void close_both(void)
{
	end_close(&a);
	end_close(&b);
}

/* The child of a fork loses the queue pairs and may have its own. */
static void test_fork(void)
{
	int status;
	pid_t child;

	open_both(&ordinary);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		struct end mine;

		alarm(60);
		CHECK_EQUAL(end_send(&a, &b, 1, 0, 8), EINVAL);
		close_both();
		end_open(&mine, &ordinary);
		CHECK_EQUAL(end_receive(&mine, 1, 0, 8), 0);
		CHECK_EQUAL(end_send(&mine, &mine, 2, 8, 8), 0);
		end_await(&mine);
		end_await(&mine);
		end_close(&mine);
		_exit(0);
	}
	CHECK_EQUAL(end_receive(&b, 1, 0, 8), 0);
	CHECK_EQUAL(end_send(&a, &b, 2, 0, 8), 0);
	CHECK_EQUAL(end_await(&a).status, IBV_WC_SUCCESS);
	CHECK_EQUAL(end_await(&b).status, IBV_WC_SUCCESS);
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	CHECK_EQUAL(status, 0);
	close_both();
}

int main(void)
{
	enum { TIMES = 50 };

	for (int i = 0; i < TIMES; i++)
		test_fork();
	return 0;
}
