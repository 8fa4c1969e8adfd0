#include "decisions.h"

#include <string.h>

void decisions_start(struct decisions *all, uint32_t floor)
{
	memset(all, 0, sizeof(*all));
	all->floor = floor;
}

void decisions_advance(struct decisions *all, uint32_t floor)
{
	uint32_t ahead = floor - all->floor;

	/* Sequences wrap: half of them are ahead, half are behind. */
	if (ahead == 0 || ahead > INT32_MAX)
		return;
	if (ahead >= WIRE_WINDOW) {
		memset(all->of, 0, sizeof(all->of));
		all->floor = floor;
		return;
	}
	while (all->floor != floor)
		all->of[all->floor++ % WIRE_WINDOW] = 0;
}

int decisions_look(const struct decisions *all, uint32_t sequence)
{
	uint32_t ahead = sequence - all->floor;

	if (ahead > INT32_MAX)
		return DECISION_KNOWN;
	if (ahead >= WIRE_WINDOW)
		return DECISION_OUTSIDE;
	return (int)all->of[sequence % WIRE_WINDOW] - 1;
}

void decisions_make(struct decisions *all, uint32_t sequence, uint8_t status)
{
	all->of[sequence % WIRE_WINDOW] = (uint8_t)(status + 1);
}
