// A queue that fails operations with data of its own, for the shim to copy.
#include "shim.h"

#include <stdio.h>
#include <string.h>

// libfabric's, of which nothing is linked.
const char *fi_strerror(int number)
{
	return strerror(number);
}

static unsigned char said[300];
static size_t said_size;
static int left = 1;
static struct weft_slot slot;

static ssize_t readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	(void)cq, (void)buf, (void)count, (void)source;
	return left ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t readerr(struct fid_cq *cq, struct fi_cq_err_entry *e, uint64_t flags)
{
	(void)cq, (void)flags;
	left = 0;
	e->op_context = &slot;
	e->flags = FI_RECV;
	e->len = 5;
	e->err = FI_EADDRNOTAVAIL;
	e->err_data = said_size ? said : NULL;
	e->err_data_size = said_size;
	return 1;
}

static const char *text(struct fid_cq *cq, int prov_errno, const void *data, char *buf, size_t len)
{
	(void)cq, (void)prov_errno, (void)data, (void)buf, (void)len;
	return "who is that";
}

int main(void)
{
	static struct fi_ops_cq ops = { .size = sizeof ops, .readfrom = readfrom, .readerr = readerr, .strerror = text };
	static struct fid_cq cq = { .ops = &ops };
	static struct weft_turn turn;
	static struct weft_completion done[4];
	static const size_t sizes[] = { 0, 16, WEFT_ERROR_DATA, sizeof said };
	size_t i, k;

	for (i = 0; i < sizeof said; i++)
		said[i] = (unsigned char)i;
	slot.token = 7;
	slot.kind = WEFT_RECV;
	turn.cq = &cq;
	turn.completions = done;
	turn.completion_limit = 4;
	for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		said_size = sizes[i];
		left = 1;
		// What the next error brings must not be in this one's place.
		memset(turn.data, 0xee, sizeof turn.data);
		weft_take_turn((uintptr_t)&turn);
		for (k = 0; k < done[0].data_length && turn.data[done[0].text][k] == (unsigned char)k; k++)
			;
		printf("%u completion, token %d, error %d, %d bytes, %s: %zu of %u\n", turn.reaped, (int)done[0].token,
		       done[0].err, (int)done[0].len, turn.texts[done[0].text], k, done[0].data_length);
	}
	return 0;
}
