#include "control.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "counters.h"
#include "engine.h"
#include "faults.h"
#include "settings.h"
#include "srd.h"

enum { CLIENTS = 8, LINE = 256 };

static struct {
	int epoll, first;
	struct sockaddr_un address;
	int listener; /* open if address has a path */
	struct client {
		int socket; /* -1: none */
		size_t used;
		char line[LINE];
	} clients[CLIENTS];
} control;

/* path is the setting with %p replaced by the process's number. */
static int path(char *into, size_t room)
{
	const char *from = settings()->control, *number = from ? strstr(from, "%p") : NULL;
	int length;

	if (!from)
		return 0;
	if (number)
		length = snprintf(into, room, "%.*s%d%s", (int)(number - from), from, (int)getpid(), number + 2);
	else
		length = snprintf(into, room, "%s", from);
	return length > 0 && (size_t)length < room;
}

static void watch(int fd, int which)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)(control.first + which)};

	epoll_ctl(control.epoll, EPOLL_CTL_ADD, fd, &event);
}

void control_open(int epoll, int first)
{
	for (int i = 0; i < CLIENTS; i++)
		control.clients[i].socket = -1;
	control.epoll = epoll;
	control.first = first;
	control.address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!path(control.address.sun_path, sizeof(control.address.sun_path))) {
		control.address.sun_path[0] = 0;
		return;
	}
	control.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlink(control.address.sun_path);
	if (control.listener < 0 ||
	    bind(control.listener, (struct sockaddr *)&control.address, sizeof(control.address)) ||
	    listen(control.listener, CLIENTS)) {
		fprintf(stderr, "weft-efa: WEFT_EFA_CONTROL=%s: %s\n", control.address.sun_path, strerror(errno));
		if (control.listener >= 0)
			close(control.listener);
		control.address.sun_path[0] = 0;
		return;
	}
	watch(control.listener, CLIENTS);
}

void control_close(void)
{
	if (!control.address.sun_path[0])
		return;
	for (int i = 0; i < CLIENTS; i++) {
		if (control.clients[i].socket >= 0)
			close(control.clients[i].socket);
		control.clients[i].socket = -1;
	}
	close(control.listener);
	unlink(control.address.sun_path);
	control.address.sun_path[0] = 0;
}

static void hang_up(struct client *client)
{
	close(client->socket);
	client->socket = -1;
}

static bool drop(char *peer)
{
	char *colon = strchr(peer, ':'), *end;
	unsigned long port = 0;
	struct in_addr ip;

	if (colon) {
		*colon = 0;
		port = strtoul(colon + 1, &end, 10);
		if (*end || !port || port > 65535)
			return false;
	}
	return inet_pton(AF_INET, peer, &ip) == 1 && faults_drop_peer(ip, (uint16_t)port);
}

static bool number(const char *text, uint64_t *n)
{
	char *end;

	*n = strtoull(text, &end, 10);
	return *text && *text != '-' && !*end;
}

static const char *refuse_next(const char *count)
{
	uint64_t n;

	if (!number(count, &n))
		return "error: want rnr and a number\n";
	faults_refuse_next(n);
	return "ok\n";
}

static const char *hold(const char *count)
{
	uint64_t n = UINT64_MAX;

	if (*count && !number(count, &n))
		return "error: want hold, or hold and a number\n";
	faults_hold(n);
	return "ok\n";
}

/* obey carries out an order, and returns what to say. */
static const char *obey(char *line)
{
	static char counters[COUNTERS_LINE];
	char *rest = strchr(line, ' ');

	if (rest)
		*rest++ = 0;
	else
		rest = line + strlen(line);
	if (!strcmp(line, "rnr"))
		return refuse_next(rest);
	if (!strcmp(line, "drop"))
		return drop(rest) ? "ok\n" : "error: want drop and ADDRESS or ADDRESS:QPN, at most 64 of them\n";
	if (!strcmp(line, "hold"))
		return hold(rest);
	if (!strcmp(line, "heal")) {
		faults_heal();
	} else if (!strcmp(line, "release")) {
		faults_hold(0);
		engine_each(srd_release);
	} else if (!strcmp(line, "counters")) {
		counters_print(counters, sizeof(counters));
		return counters;
	} else {
		return "error: want rnr N, drop PEER, heal, hold, hold N, release or counters\n";
	}
	return "ok\n";
}

static void listen_to(struct client *client)
{
	ssize_t n = recv(client->socket, client->line + client->used, LINE - client->used, MSG_DONTWAIT);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hang_up(client);
		return;
	}
	client->used += (size_t)n;
	while ((end = memchr(client->line, '\n', client->used))) {
		const char *said;

		*end++ = 0;
		said = obey(client->line);
		client->used -= (size_t)(end - client->line);
		memmove(client->line, end, client->used);
		if (send(client->socket, said, strlen(said), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			hang_up(client);
			return;
		}
	}
	if (client->used == LINE)
		hang_up(client);
}

static void greet(void)
{
	int fd = accept4(control.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (int i = 0; fd >= 0 && i < CLIENTS; i++) {
		if (control.clients[i].socket >= 0)
			continue;
		control.clients[i].socket = fd;
		control.clients[i].used = 0;
		watch(fd, i);
		return;
	}
	if (fd >= 0)
		close(fd);
}

void control_ready(int which)
{
	if (which == CLIENTS)
		greet();
	else if (control.clients[which].socket >= 0)
		listen_to(&control.clients[which]);
}
