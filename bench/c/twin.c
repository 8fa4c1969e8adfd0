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

	if (argc != 11)
		die("usage: twin WORK PROVIDER SOURCE first|second send|inject "
		    "WARMUP COUNT WINDOW SIZE DEADLINE", 0);
	order.work = argv[1];
	order.provider = argv[2];
	order.source = argv[3];
	order.first = !strcmp(argv[4], "first");
	order.inject = !strcmp(argv[5], "inject");
	// The first message that counts comes after one that does not.
	order.warmup = number(argv[6], 1, 1u << 30);
	order.count = number(argv[7], 1, 1u << 30);
	order.window = number(argv[8], 1, WINDOW_LIMIT);
	order.size = number(argv[9], sizeof(uint64_t), 1u << 26);
	set_deadline((unsigned)number(argv[10], 1, 3600));
	if (!strcmp(order.work, "pingpong"))
		pingpong(&order);
	else if (!strcmp(order.work, "flood"))
		flood(&order);
	else
		die("the work is pingpong or flood", 0);
	return 0;
}
