#include "probe.h"

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

const struct question waiting_questions[] = {
	{"sread-none", sread_none},
	{"sread-unspec", sread_unspec},
	{"sread-fd", sread_fd},
	{NULL, NULL},
};
