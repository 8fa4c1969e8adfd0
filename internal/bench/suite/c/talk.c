#include "twin.h"

#include <string.h>
#include <unistd.h>

#define LINE 2048
#define ADDRESS 256

// The runner's lines, without stdio: its reads start again after a signal.
static void read_line(char *line)
{
	size_t n = 0;

	while (n < LINE - 1) {
		ssize_t got = read(STDIN_FILENO, line + n, 1);

		check_deadline();
		if (got == 0)
			die("the runner is gone", 0);
		if (got < 0)
			continue;
		if (line[n] == '\n')
			break;
		n++;
	}
	line[n] = 0;
}

void meet_peer(struct port *port)
{
	unsigned char address[ADDRESS];
	char line[LINE], *hex;
	size_t length = sizeof address, i;
	int ret;

	CHECK(fi_getname(&port->ep->fid, address, &length));
	printf("open\t%u.%u\t%s\t%s\t%s\t", FI_MAJOR(fi_version()),
	       FI_MINOR(fi_version()), port->info->fabric_attr->prov_name,
	       port->info->fabric_attr->name, port->info->domain_attr->name);
	for (i = 0; i < length; i++)
		printf("%02x", address[i]);
	printf("\n");
	fflush(stdout);

	read_line(line);
	if (strncmp(line, "peer\t", 5))
		die("the runner did not name the peer", 0);
	hex = line + 5;
	length = strlen(hex) / 2;
	if (length > sizeof address)
		die("the peer's address is too long", 0);
	for (i = 0; i < length; i++) {
		unsigned byte;

		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			die("the peer's address is not hexadecimal", 0);
		address[i] = (unsigned char)byte;
	}
	ret = fi_av_insert(port->av, address, 1, &port->peer, 0, NULL);
	if (ret != 1)
		die("fi_av_insert", ret);
}

void wait_for_go(void)
{
	char line[LINE];

	printf("ready\n");
	fflush(stdout);
	read_line(line);
	if (strcmp(line, "go"))
		die("the runner did not say go", 0);
}

void report(const struct order *order, const struct times *t)
{
	printf("done\t%llu\t%llu\t%llu\t%llu", (unsigned long long)t->elapsed,
	       (unsigned long long)t->operations, (unsigned long long)t->part,
	       (unsigned long long)t->part_operations);
	for (int i = 0; order->each && i < PERCENTILES; i++)
		printf("\t%llu", (unsigned long long)t->percentiles[i]);
	printf("\n");
	fflush(stdout);
}

// Neither side may close its endpoint while the other may still need it.
void wait_for_end(void)
{
	char line[LINE];

	read_line(line);
	if (strcmp(line, "end"))
		die("the runner did not say end", 0);
}
