// A peer that knows libfabric and the form of messages that weft calls plain,
// and nothing of weft. efa/interop_test.go talks to it; who wants to talk to
// weft from C can begin here.
//
//	interop PROVIDER LOCAL-ID REMOTE-ID FIRST
//
// Every message that is written becomes one or two tagged messages:
//
//	length	 8 bytes, little-endian		tag REMOTE-ID<<34 | 1<<32 | id
//	payload	 that many bytes, if not 0	tag REMOTE-ID<<34 | 1<<33 | id
//
// where id counts the messages of the connection from FIRST, in 32 bits. With
// REMOTE-ID 0 and FIRST 0 that is all there is to it. Messages of the peer come
// with LOCAL-ID. The provider matches messages in the order of sending, and
// completes them in any order.
//
// The program says "address HEX" and then does what the lines of its input say:
//
//	peer HEX	the address of the other side; comes first
//	write SEED SIZE...
//			write a message of each size; "written COUNT" follows when
//			the provider is done with all that were ever written
//	read COUNT	take so many more messages; each is a line
//			"read ID LENGTH CHECKSUM", in the order of writing
//
// The end of the input is its end.
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define K_LENGTH (1ULL << 32)
#define K_PAYLOAD (1ULL << 33)
#define ID_MASK 0xffffffffULL
#define CONNECTION_SHIFT 34
// More is nothing that a test would send, and not to be allocated.
#define LONGEST (1LL << 30)

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_eq *eq;
static struct fid_ep *ep;
static struct fi_info *info;
static fi_addr_t peer = FI_ADDR_UNSPEC;
static uint64_t local_id, remote_id; // in their place in a tag
static uint32_t next_id;	     // of the next message to be written

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("interop: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static void must(const char *call, long ret)
{
	if (ret < 0)
		die("%s: %s", call, fi_strerror((int)-ret));
}

// One call of libfabric. The context comes first: libfabric has it while the
// operation is under way, and gives back its address in the completion.
struct operation {
	struct fi_context2 context;
	struct message *message;
	enum { SEND_LENGTH, SEND_PAYLOAD, RECEIVE_LENGTH, RECEIVE_PAYLOAD } kind;
};

// A message on its way out, or in.
struct message {
	struct message *next;
	uint32_t id;
	int64_t length; // as it is sent; this machine is little-endian
	uint8_t *payload;
	struct operation first, second;
	int posted; // operations that the provider has taken,
	int done;   // and those that it is done with
};

// Messages in the order of writing. Only a finished front is taken out, so that
// the order stays whatever the order of the completions.
struct deque {
	struct message *head, *tail;
};

static struct deque writes, reads;
static unsigned long wanted; // messages that are to be read and have no receive
static unsigned long written;
static struct message *receiving; // whose length has a receive
static struct message *unposted;  // the first write that the provider has not taken

static struct message *new_message(struct deque *d)
{
	struct message *m = calloc(1, sizeof *m);

	if (!m)
		die("no memory");
	m->first.message = m->second.message = m;
	if (d->tail)
		d->tail->next = m;
	else
		d->head = m;
	d->tail = m;
	return m;
}

static void pop(struct deque *d)
{
	struct message *m = d->head;

	d->head = m->next;
	if (!d->head)
		d->tail = NULL;
	free(m->payload);
	free(m);
}

static int parts(const struct message *m)
{
	return m->length ? 2 : 1;
}

// Content that says where it belongs: a sequence for each seed and number.
static void fill(uint8_t *p, int64_t n, uint64_t seed, uint64_t number)
{
	uint64_t x = (seed << 32 | number) * 0x9e3779b97f4a7c15ULL + 1;

	for (int64_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (uint8_t)(x >> 32);
	}
}

// FNV-1a.
static uint64_t checksum(const uint8_t *p, int64_t n)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (int64_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	return h;
}

// On sockets, a header of which a part is here is waited for and not taken; if it is in
// a connection's first buffer, and that is full, nothing moves any more. As in package
// fabric (room.go), connections get more room: those that come have it from the socket
// that listens, and the others are looked for while messages are new.
static int looks;

static void make_room(void)
{
	int room = 2 << 20, one = 1, domain;
	socklen_t length;

	looks--;
	for (int fd = 3; fd < 256; fd++) {
		length = sizeof domain;
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) || domain != AF_INET)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &room, sizeof room);
		setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
	}
}

static void open_endpoint(const char *provider)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	uint8_t name[256];
	size_t length = sizeof name;

	if (!hints)
		die("no memory");
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	// Messages match in the order of sending.
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(provider);
	must("fi_getinfo", fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
				      "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &domain, NULL));
	must("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
	must("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
	must("fi_eq_open", fi_eq_open(fabric, &eq_attr, &eq, NULL));
	must("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
	must("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_ep_bind", fi_ep_bind(ep, &eq->fid, 0));
	must("fi_enable", fi_enable(ep));
	if (!strcmp(provider, "sockets")) {
		looks = 100;
		make_room();
	}
	must("fi_getname", fi_getname(&ep->fid, name, &length));
	printf("address ");
	for (size_t i = 0; i < length; i++)
		printf("%02x", name[i]);
	printf("\n");
}

static void insert_peer(const char *hex)
{
	uint8_t name[256] = { 0 };
	size_t length = strlen(hex) / 2;

	// libfabric reads as many bytes as addresses of this format have.
	if (!length || length > sizeof name)
		die("an address of %zu bytes", length);
	for (size_t i = 0; i < length; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &name[i]) != 1)
			die("not an address: %s", hex);
	if (fi_av_insert(av, name, 1, &peer, 0, NULL) != 1)
		die("fi_av_insert");
}

// post_send says 0 if there is no room now: read completions and try again.
static int post_send(struct operation *op, int kind, const void *buf, size_t n, uint64_t tag)
{
	ssize_t ret;

	op->kind = kind;
	ret = fi_tsend(ep, buf, n, NULL, peer, remote_id | tag | op->message->id, &op->context);
	if (ret == -FI_EAGAIN)
		return 0;
	must("fi_tsend", ret);
	return 1;
}

// From anybody: there is one peer. It has few receives, so that none is refused.
static void post_receive(struct operation *op, int kind, void *buf, size_t n, uint64_t tag, uint64_t ignore)
{
	op->kind = kind;
	must("fi_trecv", fi_trecv(ep, buf, n, NULL, FI_ADDR_UNSPEC, local_id | tag, ignore, &op->context));
}

// post offers what has not been posted. A message that is refused keeps those
// behind it back, so that the order stays.
static void post(void)
{
	for (struct message *m; (m = unposted); unposted = m->next) {
		if (m->posted == 0)
			m->posted += post_send(&m->first, SEND_LENGTH, &m->length, sizeof m->length, K_LENGTH);
		if (m->posted == 1 && parts(m) == 2)
			m->posted += post_send(&m->second, SEND_PAYLOAD, m->payload, (size_t)m->length, K_PAYLOAD);
		if (m->posted < parts(m))
			return;
	}
}

// read_next posts the receive of the next length, whatever its id.
static void read_next(void)
{
	if (receiving || !wanted)
		return;
	wanted--;
	receiving = new_message(&reads);
	post_receive(&receiving->first, RECEIVE_LENGTH, &receiving->length, sizeof receiving->length, K_LENGTH, ID_MASK);
}

static void completed(const struct fi_cq_tagged_entry *e)
{
	struct operation *op = e->op_context;
	struct message *m = op->message;

	m->done++;
	switch (op->kind) {
	case RECEIVE_LENGTH:
		// Its tag says which message it is, and what tag its payload has.
		m->id = (uint32_t)(e->tag & ID_MASK);
		if (e->len != sizeof m->length || m->length < 0 || m->length > LONGEST)
			die("a length message of %zu bytes says %" PRId64, e->len, m->length);
		if (m->length) {
			m->payload = malloc((size_t)m->length);
			if (!m->payload)
				die("no memory");
			post_receive(&m->second, RECEIVE_PAYLOAD, m->payload, (size_t)m->length, K_PAYLOAD | m->id, 0);
		}
		receiving = NULL;
		read_next();
		break;
	case RECEIVE_PAYLOAD:
		if ((int64_t)e->len != m->length)
			die("%zu bytes where %" PRId64 " were announced", e->len, m->length);
		break;
	default:
		break;
	}
}

// release ends what is finished, in order.
static void release(void)
{
	struct message *m;
	int some = 0;

	for (; (m = writes.head) && m->done == parts(m); some = 1) {
		written++;
		pop(&writes);
	}
	if (some && !writes.head)
		printf("written %lu\n", written);
	// That of a message whose length is not here is not known.
	while ((m = reads.head) && m->done && m->done == parts(m)) {
		printf("read %" PRIu32 " %" PRId64 " %016" PRIx64 "\n", m->id, m->length, checksum(m->payload, m->length));
		pop(&reads);
	}
}

// progress reads what is complete, and waits for a millisecond if nothing is.
static void progress(void)
{
	struct fi_cq_tagged_entry e[16];
	struct fi_cq_err_entry failed = { 0 };
	ssize_t n = fi_cq_sread(cq, e, 16, NULL, 1);

	if (n == -FI_EAVAIL) {
		must("fi_cq_readerr", fi_cq_readerr(cq, &failed, 0));
		die("an operation failed: %s", fi_strerror(failed.err));
	}
	if (n != -FI_EAGAIN && n != -FI_EINTR)
		must("fi_cq_sread", n);
	if (n > 0 && looks)
		make_room();
	for (ssize_t i = 0; i < n; i++)
		completed(&e[i]);
	post();
	release();
}

static void obey(char *line)
{
	char *rest, *word = strtok_r(line, " \n", &rest);
	uint64_t seed;
	unsigned long number = 0;

	if (!word)
		return;
	if (!strcmp(word, "peer")) {
		insert_peer(strtok_r(NULL, " \n", &rest));
	} else if (!strcmp(word, "read")) {
		wanted += strtoul(strtok_r(NULL, " \n", &rest), NULL, 10);
		read_next();
	} else if (!strcmp(word, "write")) {
		seed = strtoull(strtok_r(NULL, " \n", &rest), NULL, 10);
		while ((word = strtok_r(NULL, " \n", &rest))) {
			struct message *m = new_message(&writes);

			m->id = next_id++; // wraps
			m->length = strtoll(word, NULL, 10);
			m->payload = malloc((size_t)m->length + 1);
			if (!m->payload)
				die("no memory");
			fill(m->payload, m->length, seed, number++);
			if (!unposted)
				unposted = m;
		}
		post();
	} else {
		die("no such command: %s", word);
	}
}

// commands does what lines there are, and says 0 at the end of the input.
static int commands(void)
{
	static char *input;
	static size_t used, size;
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char *end;
	ssize_t n;

	while (poll(&in, 1, 0) > 0) {
		if (size - used < 4096) {
			size += 1 << 16;
			input = realloc(input, size);
			if (!input)
				die("no memory");
		}
		n = read(STDIN_FILENO, input + used, size - used - 1);
		if (n <= 0) {
			free(input);
			return 0;
		}
		used += (size_t)n;
		input[used] = 0;
		while ((end = memchr(input, '\n', used))) {
			size_t line = (size_t)(end - input) + 1;

			*end = 0;
			obey(input);
			used -= line;
			memmove(input, input + line, used);
		}
	}
	return 1;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		die("usage: interop PROVIDER LOCAL-ID REMOTE-ID FIRST");
	local_id = strtoull(argv[2], NULL, 10) << CONNECTION_SHIFT;
	remote_id = strtoull(argv[3], NULL, 10) << CONNECTION_SHIFT;
	next_id = (uint32_t)strtoul(argv[4], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_endpoint(argv[1]);
	while (commands())
		progress();
	fi_close(&ep->fid);
	fi_close(&eq->fid);
	fi_close(&cq->fid);
	fi_close(&av->fid);
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	// What was under way is nobody's any more.
	while (writes.head)
		pop(&writes);
	while (reads.head)
		pop(&reads);
	return 0;
}
