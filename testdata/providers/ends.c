#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

// A process that sends one message and exits as soon as libfabric says that this
// is done.
static void exit_after(int inject)
{
	int names[2], got, status = 0;
	char buf[16];
	pid_t pid;

	if (pipe(names))
		return;
	// The child opens its own library state: nothing is open before the fork.
	pid = fork();
	if (pid == 0) {
		struct side peer;
		double end;
		ssize_t ret;

		open_side(&b);
		if (read(names[0], &peer, sizeof peer) != sizeof peer)
			_exit(3);
		to_a = insert(&b, &peer);
		if (inject) {
			end = seconds() + 2;
			while ((ret = fi_tinject(b.ep, "message", 8, to_a, 1)) == -FI_EAGAIN &&
			       seconds() < end)
				fi_cq_read(b.cq, &entry, 1);
			_exit(ret ? 2 : 0);
		}
		ret = send_to(&b, NULL, "message", 8, to_a, 1, &contexts[1], 2);
		_exit(!ret && reap(&b, NULL, 2, &entry, &error) > 0 ? 0 : 2);
	}
	open_side(&a);
	memset(buf, '-', sizeof buf);
	must("fi_trecv", fi_trecv(a.ep, buf, sizeof buf, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
	if (write(names[1], &a, sizeof a) != sizeof a)
		return;
	got = 0;
	while (!got && waitpid(pid, &status, WNOHANG) == 0)
		got = reap(&a, NULL, 0.01, &entry, &error);
	if (!got)
		got = reap(&a, NULL, 1, &entry, &error);
	else
		waitpid(pid, &status, 0);
	if (status)
		say("(it was not sent) ");
	say(got > 0 ? "received" : got < 0 ? "error %d" : "LOST", error.err);
}

static void exit_after_inject(void) { exit_after(1); }

static void exit_after_completion(void) { exit_after(0); }

// A peer that is killed after the first message; what later sends come to.
static void dead_peer(void)
{
	char buf[16];
	double end;
	ssize_t ret;
	pid_t pid = child_with_side(&b);
	int n = 0, done = 0, failed = 0, other = 0;

	if (pid == 0) {
		fi_trecv(b.ep, buf, sizeof buf, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]);
		for (;;)
			reap(&b, NULL, 1, &entry, &error);
	}
	open_side(&a);
	to_b = insert(&a, &b);
	must("fi_tsend", send_to(&a, NULL, "message", 8, to_b, 1, &contexts[0], 2));
	reap(&a, NULL, 2, &entry, &error);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	end = seconds() + 2;
	do {
		ret = fi_tsend(a.ep, "message", 8, NULL, to_b, 1, &contexts[1 + n % 4000]);
		n += ret == 0;
		if (ret && ret != -FI_EAGAIN && !other++)
			say("fi_tsend %s; ", code(ret));
		switch (reap(&a, NULL, 0.002, &entry, &error)) {
		case 1:
			done++;
			break;
		case -1:
			if (!failed++)
				say("err %d (%s); ", error.err, fi_strerror(abs(error.err)));
		}
	} while (seconds() < end);
	say("in 2 s %d sends taken, %d completed, %d failed; at the end fi_tsend %s", n, done, failed, code(ret));
}

// One endpoint of this process is closed while its messages wait at another.
static void closed_neighbour(void)
{
	static char large[1 << 20], received[1 << 20];
	char buf[16];
	int i;

	pair();
	must("fi_trecv", fi_trecv(b.ep, buf, sizeof buf, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[6]));
	must("fi_tsend", send_to(&a, &b, "message", 8, to_b, 1, &contexts[7], 1));
	if (reap(&b, &a, 1, &entry, &error) <= 0)
		say("(the first message did not arrive) ");
	for (i = 0; i < 4; i++)
		must("fi_tsend", send_to(&a, &b, i % 2 ? large : "message", i % 2 ? sizeof large : 8, to_b, 1, &contexts[i], 0.2));
	say("fi_close of the sender %s, ", code(fi_close(&a.ep->fid)));
	fi_close(&a.cq->fid);
	fi_close(&a.av->fid);
	fi_close(&a.domain->fid);
	say("then at the receiver:");
	for (i = 0; i < 4; i++) {
		int got;

		must("fi_trecv", fi_trecv(b.ep, received, sizeof received, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[5]));
		got = reap(&b, NULL, 1, &entry, &error);
		say(" %s", got > 0 ? "message" : got < 0 ? fi_strerror(abs(error.err)) : "nothing");
		if (got <= 0)
			break;
	}
}

const struct question end_questions[] = {
	{"exit-after-inject", exit_after_inject},
	{"exit-after-completion", exit_after_completion},
	{"dead-peer", dead_peer},
	{"closed-neighbour", closed_neighbour},
	{NULL, NULL},
};
