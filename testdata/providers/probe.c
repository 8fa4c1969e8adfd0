// Asks libfabric's providers what they do where they differ: a line for each
// question, with the answer of this machine's library. docs/PROVIDERS.md says
// how weft deals with the answers.
//
//	scripts/probe                        every question to sockets, tcp, shm, udp
//	scripts/probe PROVIDER               every question to one
//	scripts/probe PROVIDER QUESTION...
//
// Each question is asked in a process of its own, which may crash or hang.
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

// A name of this program's own, where providers take any.
#define PROBE_NODE "weft-probe"

static const char *provider;

// Shared with the process that asks.
enum { ANSWER = 2048, PIDS = 16 };
static char *answer;
static struct {
	char answer[ANSWER];
	int count;
	pid_t pids[PIDS]; // who opened something
} *shared;

static void say(const char *format, ...)
{
	size_t used = strlen(answer);
	va_list args;

	va_start(args, format);
	vsnprintf(answer + used, ANSWER - used, format, args);
	va_end(args);
}

// What a call returned: 0, or the name of the error with its sign.
static const char *code(long ret)
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

static void must(const char *call, long ret)
{
	if (ret >= 0)
		return;
	say("(no answer: %s returns %s)", call, code(ret));
	_exit(0);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	char name[512];
	size_t name_size;
};

static int is_shm(void) { return !strcmp(provider, "shm"); }

static struct fi_info *look(uint64_t caps, const char *node, int *ret)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(provider);
	*ret = fi_getinfo(fi_version(), node, NULL, node ? FI_SOURCE : 0, hints, &info);
	fi_freeinfo(hints);
	return info;
}

static void open_domain(struct side *s, uint64_t caps)
{
	int ret;

	if (shared->count < PIDS)
		shared->pids[shared->count++] = getpid();
	s->info = look(caps, is_shm() ? NULL : "127.0.0.1", &ret);
	must("fi_getinfo", ret);
	must("fi_fabric", fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	must("fi_domain", fi_domain(s->fabric, s->info, &s->domain, NULL));
}

static void open_rest(struct side *s)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE, .size = 4096};

	must("fi_av_open", fi_av_open(s->domain, &av, &s->av, NULL));
	must("fi_cq_open", fi_cq_open(s->domain, &cq, &s->cq, NULL));
	must("fi_endpoint", fi_endpoint(s->domain, s->info, &s->ep, NULL));
	must("fi_ep_bind", fi_ep_bind(s->ep, &s->av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(s->ep));
	s->name_size = sizeof s->name;
	must("fi_getname", fi_getname(&s->ep->fid, s->name, &s->name_size));
}

static void open_side_for(struct side *s, uint64_t caps)
{
	memset(s, 0, sizeof *s);
	open_domain(s, caps);
	open_rest(s);
}

static void open_side(struct side *s) { open_side_for(s, FI_TAGGED); }

static fi_addr_t insert(struct side *s, const struct side *peer)
{
	fi_addr_t address = FI_ADDR_NOTAVAIL;
	int ret = fi_av_insert(s->av, peer->name, 1, &address, 0, NULL);

	must("fi_av_insert", ret == 1 ? 0 : -FI_EINVAL);
	return address;
}

// Reads s's queue, and moves other on, until there is something or the time is
// over. 1: a completion; 0: nothing; -1: an error, in *error.
static int reap(struct side *s, struct side *other, double limit,
		struct fi_cq_tagged_entry *entry, struct fi_cq_err_entry *error)
{
	double end = seconds() + limit;
	struct fi_cq_tagged_entry unused;
	ssize_t ret;

	do {
		ret = fi_cq_read(s->cq, entry, 1);
		if (ret == 1)
			return 1;
		if (ret == -FI_EAVAIL) {
			memset(error, 0, sizeof *error);
			fi_cq_readerr(s->cq, error, 0);
			return -1;
		}
		if (other && fi_cq_read(other->cq, &unused, 1) == -FI_EAVAIL)
			fi_cq_readerr(other->cq, error, 0);
		// A provider with a thread of its own needs the core.
		poll(NULL, 0, 1);
	} while (seconds() < end);
	return 0;
}

// Posts until it is taken, moving both sides on. Returns the last answer.
static ssize_t send_to(struct side *s, struct side *other, const void *buf, size_t size,
		       fi_addr_t to, uint64_t tag, void *context, double limit)
{
	double end = seconds() + limit;
	struct fi_cq_tagged_entry unused;
	struct fi_cq_err_entry error;
	ssize_t ret;

	for (;;) {
		ret = fi_tsend(s->ep, buf, size, NULL, to, tag, context);
		if (ret != -FI_EAGAIN || seconds() > end)
			return ret;
		if (fi_cq_read(s->cq, &unused, 1) == -FI_EAVAIL)
			fi_cq_readerr(s->cq, &error, 0);
		if (other && fi_cq_read(other->cq, &unused, 1) == -FI_EAVAIL)
			fi_cq_readerr(other->cq, &error, 0);
		sched_yield();
	}
}

static struct side a, b;
static fi_addr_t to_a, to_b;
static struct fi_context2 contexts[8192];
static struct fi_cq_tagged_entry entry;
static struct fi_cq_err_entry error;

static void pair(void)
{
	open_side(&a);
	open_side(&b);
	to_a = insert(&b, &a);
	to_b = insert(&a, &b);
}

static void attributes(void)
{
	struct fi_info *i;
	int ret;

	i = look(FI_TAGGED, is_shm() ? NULL : "127.0.0.1", &ret);
	must("fi_getinfo", ret);
	say("%s, %s", i->fabric_attr->prov_name, fi_tostr(&i->addr_format, FI_TYPE_ADDR_FORMAT));
	say(", data %s", fi_tostr(&i->domain_attr->data_progress, FI_TYPE_PROGRESS));
	say(", mr_mode [%s]", fi_tostr(&i->domain_attr->mr_mode, FI_TYPE_MR_MODE));
	say(", cq data %zu, inject %zu, message %zu, queue %zu and %zu, vectors %zu",
	    i->domain_attr->cq_data_size, i->tx_attr->inject_size, i->ep_attr->max_msg_size,
	    i->tx_attr->size, i->rx_attr->size, i->tx_attr->iov_limit);
}

static void structs(void)
{
	say("fi_info %zu, fabric_attr %zu, domain_attr %zu, ep_attr %zu, tx_attr %zu, rx_attr %zu",
	    sizeof(struct fi_info), sizeof(struct fi_fabric_attr), sizeof(struct fi_domain_attr),
	    sizeof(struct fi_ep_attr), sizeof(struct fi_tx_attr), sizeof(struct fi_rx_attr));
	say(", cq_attr %zu, cq_err_entry %zu, mr_attr %zu, av_attr %zu", sizeof(struct fi_cq_attr),
	    sizeof(struct fi_cq_err_entry), sizeof(struct fi_mr_attr), sizeof(struct fi_av_attr));
}

// Blocking on an empty queue for 100 ms, with each kind of wait object.
static void block(enum fi_wait_obj wait)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait, .size = 16};
	struct fid_cq *cq;
	double begin;
	ssize_t ret;
	int fd;

	open_side(&a);
	ret = fi_cq_open(a.domain, &attr, &cq, NULL);
	say("fi_cq_open %s", code(ret));
	if (ret)
		return;
	if (wait == FI_WAIT_FD)
		say(", fi_control %s", code(fi_control(&cq->fid, FI_GETWAIT, &fd)));
	say(", fi_cq_sread of 100 ms ");
	begin = seconds();
	ret = fi_cq_sread(cq, &entry, 1, NULL, 100);
	say("%s %s", code(ret), seconds() - begin < 0.05 ? "at once" : "in time");
}

static void sread_none(void) { block(FI_WAIT_NONE); }
static void sread_unspec(void) { block(FI_WAIT_UNSPEC); }
static void sread_fd(void) { block(FI_WAIT_FD); }

static void handlers(void)
{
	struct sigaction before[NSIG], now;
	int s, found = 0;

	for (s = 1; s < NSIG; s++)
		sigaction(s, NULL, &before[s]);
	open_side(&a);
	for (s = 1; s < NSIG; s++) {
		if (sigaction(s, NULL, &now) || now.sa_handler == before[s].sa_handler)
			continue;
		say("%s%s%s", found++ ? ", " : "", strsignal(s),
		    now.sa_flags & SA_ONSTACK ? " with SA_ONSTACK" : " without SA_ONSTACK");
	}
	say(found ? "" : "none");
}

static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n - 2;
}

static void threads(void)
{
	int before = entries("/proc/self/task");

	open_side(&a);
	say("%d", entries("/proc/self/task") - before);
}

// A child that has opened a side and waits; its name comes through the pipe.
static pid_t child_with_side(struct side *s)
{
	int pipes[2];
	pid_t pid;

	if (pipe(pipes) || (pid = fork()) < 0)
		_exit(1);
	if (pid == 0) {
		open_side(s);
		if (write(pipes[1], s, sizeof *s) == sizeof *s)
			return 0;
		_exit(1);
	}
	close(pipes[1]);
	if (read(pipes[0], s, sizeof *s) != sizeof *s)
		_exit(1);
	return pid;
}

static void killed(void)
{
	int before = entries("/dev/shm");
	pid_t pid = child_with_side(&a);

	if (pid == 0)
		for (;;)
			pause();
	say("files in /dev/shm: %d while it lives", entries("/dev/shm") - before);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	say(", %d after SIGKILL", entries("/dev/shm") - before);
}

// Where two processes ask to be bound to the same host, without a port.
static void open_at_node(struct side *s, const char *at)
{
	int ret;

	memset(s, 0, sizeof *s);
	s->info = look(FI_TAGGED, at, &ret);
	must("fi_getinfo", ret);
	must("fi_fabric", fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	must("fi_domain", fi_domain(s->fabric, s->info, &s->domain, NULL));
	open_rest(s);
}

static void node(void)
{
	// The name is this program's alone where it is free text.
	const char *at = is_shm() ? PROBE_NODE : "127.0.0.1";
	int pipes[2];

	if (pipe(pipes))
		return;
	if (fork() == 0) {
		open_at_node(&b, at);
		if (write(pipes[1], &b, sizeof b) == sizeof b)
			pause();
		_exit(0);
	}
	close(pipes[1]);
	if (read(pipes[0], &b, sizeof b) != sizeof b)
		return;
	open_at_node(&a, at);
	say(a.name_size == b.name_size && !memcmp(a.name, b.name, a.name_size)
		    ? "two processes have the SAME address"
		    : "each has an address of its own");
}

static void foreign_source(void)
{
	int ret;

	look(FI_TAGGED, "192.0.2.1", &ret);
	say("fi_getinfo %s, then ", code(ret));
	if (ret)
		return;
	open_at_node(&a, "192.0.2.1");
	say("an endpoint that can be enabled");
}

static void duplicate(void)
{
	pair();
	say(insert(&a, &b) == to_b ? "the same fi_addr" : "another fi_addr");
}

static void many_peers(void)
{
	fi_addr_t address;
	int n, ret;

	open_side(&a);
	for (n = 0; n < 2000; n++) {
		char name[512];

		memcpy(name, a.name, sizeof name);
		if (is_shm())
			snprintf(name, sizeof name, "fi_shm://%d:%d:0", 100000 + n, n);
		else
			name[2] = (char)(n >> 8 | 1), name[3] = (char)n; // the port
		ret = fi_av_insert(a.av, name, 1, &address, 0, NULL);
		if (ret != 1)
			break;
	}
	say(n < 2000 ? "%d, then fi_av_insert %s" : "%d and more", n, code(ret));
}

static void null_cq_attr(void)
{
	struct fid_cq *cq;

	open_side(&a);
	say("fi_cq_open %s", code(fi_cq_open(a.domain, NULL, &cq, NULL)));
}

static void null_av_attr(void)
{
	struct fid_av *av;

	open_side(&a);
	say("fi_av_open %s", code(fi_av_open(a.domain, NULL, &av, NULL)));
}

static void unbound(void)
{
	struct fid_ep *ep;

	open_side(&a);
	must("fi_endpoint", fi_endpoint(a.domain, a.info, &ep, NULL));
	say("fi_enable %s", code(fi_enable(ep)));
}

static void not_enabled(void)
{
	struct fid_ep *ep;

	open_side(&a);
	must("fi_endpoint", fi_endpoint(a.domain, a.info, &ep, NULL));
	say("fi_tinject %s", code(fi_tinject(ep, "x", 1, 0, 1)));
}

static void unknown_peer(void)
{
	pair();
	say("fi_tinject %s", code(fi_tinject(a.ep, "x", 1, 7, 1)));
}

static void busy(void)
{
	open_side(&a);
	say("fi_close of the queue %s", code(fi_close(&a.cq->fid)));
	say(", of the domain %s", code(fi_close(&a.domain->fid)));
}

static void completion(int got, const char *buf, size_t size)
{
	size_t i, delivered = 0;

	for (i = 0; i < size; i++)
		delivered += buf[i] != '-';
	if (got > 0)
		say("success, length %zu", entry.len);
	else if (got < 0)
		say("err %d (%s), length %zu, excess %zu", error.err,
		    fi_strerror(abs(error.err)), error.len, error.olen);
	else
		say("no completion");
	say(", %zu bytes written", delivered);
}

static void truncate_message(void)
{
	char small[16], next[16];
	int got;

	pair();
	memset(small, '-', sizeof small);
	memset(next, '-', sizeof next);
	must("fi_trecv", fi_trecv(b.ep, small, 4, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
	must("fi_trecv", fi_trecv(b.ep, next, 16, NULL, FI_ADDR_UNSPEC, 2, 0, &contexts[1]));
	must("fi_tsend", send_to(&a, &b, "0123456789abcdef", 16, to_b, 1, &contexts[2], 1));
	got = reap(&b, &a, 2, &entry, &error);
	say("16 bytes into 4: ");
	completion(got, small, sizeof small);
	must("; fi_tsend", send_to(&a, &b, "0123456789abcdef", 16, to_b, 2, &contexts[3], 1));
	got = reap(&b, &a, 2, &entry, &error);
	say("; the next: ");
	completion(got, next, sizeof next);
}

static void cancel(void)
{
	char buf[4];

	pair();
	must("fi_trecv", fi_trecv(b.ep, buf, 4, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
	say("fi_cancel %s, ", code(fi_cancel(&b.ep->fid, &contexts[0])));
	memset(buf, '-', sizeof buf);
	completion(reap(&b, &a, 1, &entry, &error), buf, sizeof buf);
	say("; of what is unknown %s", code(fi_cancel(&b.ep->fid, &contexts[1])));
}

static void peek_tag(uint64_t tag)
{
	struct fi_msg_tagged m = {.addr = FI_ADDR_UNSPEC, .tag = tag, .context = &contexts[9]};
	ssize_t ret = fi_trecvmsg(b.ep, &m, FI_PEEK);
	int got;

	if (ret) {
		say("fi_trecvmsg %s", code(ret));
		return;
	}
	got = reap(&b, &a, 1, &entry, &error);
	if (got > 0)
		say("found, length %zu", entry.len);
	else if (got < 0)
		say("err %d (%s)", error.err, fi_strerror(abs(error.err)));
	else
		say("no completion");
}

static void peek(void)
{
	pair();
	say("nothing there: ");
	peek_tag(1);
	must("fi_tsend", send_to(&a, &b, "0123456789abcdef", 16, to_b, 2, &contexts[0], 1));
	// The peer's queue is read so that the message is there.
	reap(&b, &a, 0.2, &entry, &error);
	say("; a message there: ");
	peek_tag(2);
}

// Messages that nobody receives, then a receive for the last one, then the rest.
static void unexpected(void)
{
	enum { MOST = 4000 };
	int sent, got = 0, left;
	char buf[16];

	pair();
	for (sent = 0; sent < MOST; sent++)
		if (send_to(&a, &b, "message", 8, to_b, (uint64_t)sent, &contexts[sent], 0.3))
			break;
	say(sent < MOST ? "%d sent, then EAGAIN" : "%d sent and more", sent);
	reap(&b, &a, 0.2, &entry, &error);
	must("fi_trecv", fi_trecv(b.ep, buf, sizeof buf, NULL, FI_ADDR_UNSPEC, (uint64_t)sent - 1, 0, &contexts[MOST]));
	say("; the last first: %s", reap(&b, &a, 1, &entry, &error) > 0 ? "received" : "not received");
	for (left = 0; left < sent - 1; left++) {
		if (fi_trecv(b.ep, buf, sizeof buf, NULL, FI_ADDR_UNSPEC, (uint64_t)left, 0, &contexts[MOST + 1]))
			break;
		if (reap(&b, &a, 1, &entry, &error) <= 0)
			break;
		got++;
	}
	say(", then %d of the other %d in order", got, sent - 1);
}

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

// Two messages of one sender, and a receive from anyone beside one from it.
static void directed(void)
{
	static const char *order[] = {"any, named", "named, any"};
	int first, early, i;

	for (early = 0; early < 2; early++) {
		for (first = 0; first < 2; first++) {
			char got[2][16] = {"-", "-"};

			open_side_for(&a, FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE);
			open_side_for(&b, FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE);
			to_a = insert(&b, &a);
			to_b = insert(&a, &b);
			for (i = 0; early && i < 2; i++)
				must("fi_tsend", send_to(&a, &b, i ? "2" : "1", 2, to_b, 1, &contexts[i], 1));
			if (early)
				reap(&b, &a, 0.1, &entry, &error);
			for (i = 0; i < 2; i++)
				must("fi_trecv", fi_trecv(b.ep, got[i], 16, NULL, i == first ? FI_ADDR_UNSPEC : to_a, 1, 0, &contexts[2 + i]));
			for (i = 0; !early && i < 2; i++)
				must("fi_tsend", send_to(&a, &b, i ? "2" : "1", 2, to_b, 1, &contexts[i], 1));
			reap(&b, &a, 1, &entry, &error);
			reap(&b, &a, 1, &entry, &error);
			say("%s%s %s: %s", early || first ? "; " : "", order[first],
			    early ? "after the messages" : "before the messages",
			    got[0][0] == '1' && got[1][0] == '2' ? "in order" : "WRONG, got ");
			if (got[0][0] != '1' || got[1][0] != '2')
				say("%s and %s", got[0], got[1]);
			fi_close(&a.ep->fid);
			fi_close(&b.ep->fid);
		}
	}
}

static const struct {
	const char *name;
	void (*ask)(void);
} questions[] = {
	{"attributes", attributes},
	{"structs", structs},
	{"sread-none", sread_none},
	{"sread-unspec", sread_unspec},
	{"sread-fd", sread_fd},
	{"handlers", handlers},
	{"threads", threads},
	{"killed", killed},
	{"node", node},
	{"foreign-source", foreign_source},
	{"duplicate", duplicate},
	{"many-peers", many_peers},
	{"null-cq-attr", null_cq_attr},
	{"null-av-attr", null_av_attr},
	{"unbound", unbound},
	{"not-enabled", not_enabled},
	{"unknown-peer", unknown_peer},
	{"busy", busy},
	{"truncate", truncate_message},
	{"cancel", cancel},
	{"peek", peek},
	{"unexpected", unexpected},
	{"exit-after-inject", exit_after_inject},
	{"exit-after-completion", exit_after_completion},
	{"dead-peer", dead_peer},
	{"closed-neighbour", closed_neighbour},
	{"directed", directed},
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

// Removes the shared memory of those that did not close what they opened.
static void clear(void)
{
	DIR *dir = opendir("/dev/shm");
	struct dirent *e;
	int i;

	while (dir && (e = readdir(dir))) {
		char path[300];

		for (i = 0; i < shared->count; i++) {
			char *end;
			long pid = strtol(e->d_name, &end, 10);

			if ((pid == shared->pids[i] && *end == ':') ||
			    !strncmp(e->d_name, PROBE_NODE, strlen(PROBE_NODE)) ||
			    !strncmp(e->d_name, "192.0.2.1:", 10)) {
				snprintf(path, sizeof path, "/dev/shm/%s", e->d_name);
				unlink(path);
				break;
			}
		}
	}
	if (dir)
		closedir(dir);
}

static void ask(const char *of, int q)
{
	int status = 0;
	pid_t pid;

	provider = of;
	memset(shared, 0, sizeof *shared);
	pid = fork();
	if (pid == 0) {
		// Its children and what they leave running end with it.
		setpgid(0, 0);
		alarm(12);
		questions[q].ask();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(1);
	kill(-pid, SIGKILL);
	printf("%-8s %-22s %s", of, questions[q].name, answer);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		printf(" NEVER RETURNS");
	else if (WIFSIGNALED(status))
		printf(" DIES OF %s", strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		printf(" exit %d", WEXITSTATUS(status));
	printf("\n");
	fflush(stdout);
	clear();
}

int main(int argc, char **argv)
{
	static const char *all[] = {"sockets", "tcp", "shm", "udp"};
	uint32_t v = fi_version();
	int p, q, i, found;

	// A dependency of Debian's library catches SIGSEGV when it is loaded.
	if (!getenv("IPATH_NO_BACKTRACE")) {
		setenv("IPATH_NO_BACKTRACE", "1", 1);
		execv("/proc/self/exe", argv);
	}
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	answer = shared->answer;
	printf("libfabric %u.%u, headers %u.%u\n", FI_MAJOR(v), FI_MINOR(v), FI_MAJOR_VERSION, FI_MINOR_VERSION);
	fflush(stdout);
	for (p = 0; p < 4; p++)
		for (q = 0; argc < 2 && q < QUESTIONS; q++)
			ask(all[p], q);
	for (q = 0; argc == 2 && q < QUESTIONS; q++)
		ask(argv[1], q);
	for (i = 2; i < argc; i++) {
		for (q = 0, found = 0; q < QUESTIONS; q++)
			if (!strcmp(questions[q].name, argv[i])) {
				ask(argv[1], q);
				found = 1;
			}
		if (!found) {
			fprintf(stderr, "probe: no question %s\n", argv[i]);
			return 2;
		}
	}
	return 0;
}
