#include "twin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || *end || n < least || n > most)
		die("an argument is out of range", 0);
	return n;
}

int main(int argc, char **argv)
{
	struct order order;
	struct times (*work)(struct port *, const struct order *) = NULL;
	struct times times;
	struct port port;
	uint64_t slots = 0; // how many messages there is to be memory for

	if (argc != 11)
		die("usage: twin WORK PROVIDER SOURCE first|second send|inject|two "
		    "WARMUP COUNT WINDOW SIZE DEADLINE", 0);
	order.work = argv[1];
	order.provider = argv[2];
	order.source = argv[3];
	order.first = !strcmp(argv[4], "first");
	order.inject = !strcmp(argv[5], "inject");
	order.two = !strcmp(argv[5], "two");
	// The first message that counts comes after one that does not.
	order.warmup = number(argv[6], 1, 1u << 30);
	order.count = number(argv[7], 1, 1u << 30);
	order.window = number(argv[8], 1, WINDOW_LIMIT);
	order.size = number(argv[9], sizeof(uint64_t), 1u << 26);
	order.each = !strcmp(order.work, "latency");
	set_deadline((unsigned)number(argv[10], 1, 3600));
	if (!strcmp(order.work, "pingpong") && order.two)
		work = pingpong_of_two, slots = 4;
	else if (!strcmp(order.work, "pingpong") || (order.each && !order.two))
		work = pingpong, slots = 2;
	else if (!strcmp(order.work, "flood") && !order.two)
		work = flood, slots = order.window + 1;
	else
		die("the work is pingpong, or latency or flood in one message each", 0);
	open_port(&port, &order, slots * order.size, slots);
	meet_peer(&port);
	times = work(&port, &order);
	report(&order, &times);
	wait_for_end();
	close_port(&port);
	return 0;
}
