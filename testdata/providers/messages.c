#include <stdlib.h>
#include <string.h>

#include "probe.h"

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

const struct question message_questions[] = {
	{"truncate", truncate_message},
	{"cancel", cancel},
	{"peek", peek},
	{"unexpected", unexpected},
	{"directed", directed},
	{NULL, NULL},
};
