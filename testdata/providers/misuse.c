#include "probe.h"

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

// An endpoint that only sends, and has a queue for that.
static void send_queue(void)
{
	struct fid_ep *ep;

	open_side_for(&a, FI_TAGGED | FI_SEND);
	must("fi_endpoint", fi_endpoint(a.domain, a.info, &ep, NULL));
	must("fi_ep_bind", fi_ep_bind(ep, &a.av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(ep, &a.cq->fid, FI_TRANSMIT));
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

const struct question misuse_questions[] = {
	{"null-cq-attr", null_cq_attr},
	{"null-av-attr", null_av_attr},
	{"unbound", unbound},
	{"send-queue", send_queue},
	{"not-enabled", not_enabled},
	{"unknown-peer", unknown_peer},
	{"busy", busy},
	{NULL, NULL},
};
