#include "faults.h"

#include "counters.h"
#include "settings.h"

enum { PEERS = 64 };

static struct {
	uint64_t refuse;
	uint64_t held;
	unsigned count;
	struct {
		struct in_addr address;
		uint16_t port;
	} cut[PEERS];
} orders;

/* next is splitmix64: any seed will do, and neighbouring ones are unrelated. */
static uint64_t next(struct faults *faults)
{
	uint64_t z = faults->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static bool chance(struct faults *faults, double share)
{
	return share > 0 && (double)(next(faults) >> 11) * 0x1p-53 < share;
}

void faults_seed(struct faults *faults, uint64_t seed, uint64_t salt)
{
	faults->state = seed;
	faults->state = next(faults) + salt;
	faults->state = next(faults);
}

uint64_t faults_delay(struct faults *faults)
{
	const struct settings *set = settings();
	uint64_t delay = set->latency;

	if (chance(faults, set->reorder)) {
		delay += 1 + next(faults) % set->reorder_delay;
		counters_add(COUNTER_REORDERED, 1);
	}
	return delay;
}

bool faults_cut_off(struct in_addr peer, uint16_t port)
{
	for (unsigned i = 0; i < orders.count; i++)
		if (orders.cut[i].address.s_addr == peer.s_addr &&
		    (!orders.cut[i].port || orders.cut[i].port == port))
			return true;
	return false;
}

bool faults_lose(struct faults *faults, struct in_addr peer, uint16_t port)
{
	if (!chance(faults, settings()->drop) && !faults_cut_off(peer, port))
		return false;
	counters_add(COUNTER_DROPPED, 1);
	return true;
}

bool faults_refuse(struct faults *faults)
{
	if (orders.refuse)
		orders.refuse--;
	else if (!chance(faults, settings()->not_ready))
		return false;
	counters_add(COUNTER_REFUSED, 1);
	return true;
}

bool faults_held(void)
{
	if (!orders.held)
		return false;
	if (orders.held != UINT64_MAX)
		orders.held--;
	return true;
}

void faults_refuse_next(uint64_t count)
{
	orders.refuse = count;
}

void faults_hold(uint64_t count)
{
	orders.held = count;
}

bool faults_drop_peer(struct in_addr peer, uint16_t port)
{
	if (orders.count == PEERS)
		return false;
	orders.cut[orders.count].address = peer;
	orders.cut[orders.count++].port = port;
	return true;
}

void faults_heal(void)
{
	orders.count = 0;
	orders.refuse = 0;
}
