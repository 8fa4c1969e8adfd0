#include "udp.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "counters.h"
#include "queue_pair.h"
#include "settings.h"

enum {
	BUFFER = WIRE_CHUNK + sizeof(struct wire_header),
	KERNEL_BUFFER = 8 << 20,
};

static int bind_to(int socket, struct in_addr address)
{
	static _Atomic unsigned next;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = address};
	unsigned first = settings()->first_qpn;

	do {
		if (first)
			at.sin_port = htons((uint16_t)(first + next++));
		if (!bind(socket, (struct sockaddr *)&at, sizeof(at)))
			return 0;
	} while (first && errno == EADDRINUSE && first + next <= 65535);
	return errno;
}

int udp_open(struct in_addr address, int *made, uint16_t *port, uint32_t *room)
{
	static const int on = 1, size = KERNEL_BUFFER;
	struct sockaddr_in at;
	socklen_t length = sizeof(at), length_of_got = sizeof(int);
	int err, got, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return errno;
	/* Beyond the system's limit if we may, up to it otherwise. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	err = setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)) ? errno : bind_to(fd, address);
	if (!err && (getsockname(fd, (struct sockaddr *)&at, &length) ||
		     getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &length_of_got)))
		err = errno;
	if (err) {
		close(fd);
		return err;
	}
	*made = fd;
	*port = ntohs(at.sin_port);
	/* The kernel counts its own overhead as well, and has doubled what was asked
	 * for because of that. */
	*room = (uint32_t)got / 2;
	return 0;
}

int udp_send(const struct queue_pair *qp, struct in_addr ip, uint16_t port, const struct wire_header *header,
	     struct iovec *parts, int count)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = ip, .sin_port = htons(port)};
	struct msghdr message = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = parts,
		.msg_iovlen = (size_t)count,
	};

	parts[0] = (struct iovec){(void *)(uintptr_t)header, sizeof(*header)};
	/* What another packet of this socket suffered is told to the next call, and
	 * only once: that is not about this packet. */
	for (int tries = 0; tries < 4; tries++) {
		ssize_t sent = sendmsg(qp->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent >= 0) {
			counters_add(COUNTER_PACKETS_SENT, 1);
			counters_carried(qp->device->index, (uint64_t)sent, 0);
			return 0;
		}
		if (errno != ECONNREFUSED && errno != EINTR)
			return errno;
	}
	return EAGAIN;
}

void udp_answer(const struct queue_pair *qp, struct answer *answers, unsigned count)
{
	struct mmsghdr messages[ANSWERS];
	struct iovec parts[ANSWERS];
	unsigned sent = 0;

	memset(messages, 0, sizeof(messages));
	for (unsigned i = 0; i < count; i++) {
		parts[i] = (struct iovec){&answers[i].header, sizeof(answers[i].header)};
		messages[i].msg_hdr.msg_name = &answers[i].to;
		messages[i].msg_hdr.msg_namelen = sizeof(answers[i].to);
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	for (int tries = 0; sent < count && tries < 8; tries++) {
		int n = sendmmsg(qp->socket, messages + sent, count - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0)
			sent += (unsigned)n;
		else if (errno != ECONNREFUSED && errno != EINTR)
			break;
	}
	counters_add(COUNTER_PACKETS_SENT, sent);
	counters_carried(qp->device->index, sent * sizeof(struct wire_header), 0);
}

static bool sound(const struct wire_header *header)
{
	return header->magic == WIRE_MAGIC && header->version == WIRE_VERSION;
}

int udp_receive(const struct queue_pair *qp, struct udp_packet *packets)
{
	static uint8_t buffers[UDP_BATCH][BUFFER];
	struct mmsghdr messages[UDP_BATCH];
	struct iovec parts[UDP_BATCH];
	int n;

	memset(messages, 0, sizeof(messages));
	for (int i = 0; i < UDP_BATCH; i++) {
		parts[i] = (struct iovec){buffers[i], BUFFER};
		messages[i].msg_hdr.msg_name = &packets[i].from;
		messages[i].msg_hdr.msg_namelen = sizeof(packets[i].from);
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	do
		n = recvmmsg(qp->socket, messages, UDP_BATCH, MSG_DONTWAIT, NULL);
	while (n < 0 && (errno == ECONNREFUSED || errno == EINTR));
	for (int i = 0; i < n; i++) {
		uint32_t length = messages[i].msg_len;

		counters_carried(qp->device->index, 0, length);
		memset(&packets[i].header, 0, sizeof(packets[i].header));
		if (length < sizeof(packets[i].header) || (messages[i].msg_hdr.msg_flags & MSG_TRUNC))
			continue;
		memcpy(&packets[i].header, buffers[i], sizeof(packets[i].header));
		if (!sound(&packets[i].header))
			packets[i].header.kind = 0;
		packets[i].payload = buffers[i] + sizeof(packets[i].header);
		packets[i].length = length - (uint32_t)sizeof(packets[i].header);
	}
	if (n > 0)
		counters_add(COUNTER_PACKETS_RECEIVED, (uint64_t)n);
	return n < 0 ? 0 : n;
}

bool udp_refused(int socket, struct in_addr *ip, uint16_t *port)
{
	struct sockaddr_in to;
	union {
		char room[512];
		struct cmsghdr align;
	} control;
	struct msghdr message = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	while (recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) {
		for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
			struct sock_extended_err reason;

			if (part->cmsg_level != IPPROTO_IP || part->cmsg_type != IP_RECVERR)
				continue;
			memcpy(&reason, CMSG_DATA(part), sizeof(reason));
			if (reason.ee_errno != ECONNREFUSED)
				continue;
			*ip = to.sin_addr;
			*port = ntohs(to.sin_port);
			return true;
		}
		message.msg_namelen = sizeof(to);
		message.msg_controllen = sizeof(control);
	}
	return false;
}
