//go:build linux

#define _GNU_SOURCE
#include "innershm.h"
#include "innerendpoint.h"
#include "mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Within how many of its first words an endpoint has its queue and its vector.
#define FIRST_WORDS 64
// What the files of shm begin with: this number, in a byte, and after four bytes the number of
// the process.
#define LAYOUT 4

// member finds a handle of a class among the first words of an endpoint that is inside of another.
static struct fid *member(const struct weft_looks *l, struct fid *of, struct fid_ep *inside,
			  size_t fclass)
{
	struct fid *words[FIRST_WORDS];
	size_t i;

	if (!weft_look(l, inside, words, sizeof words))
		return NULL;
	for (i = 0; i < FIRST_WORDS; i++)
		if (weft_is_inner(l, of, words[i], fclass))
			return words[i];
	return NULL;
}

static int has(struct fid **words, size_t count, const struct fid *one)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (words[i] == one)
			return 1;
	return 0;
}

struct fid_ep *weft_inner_shm(struct fid_ep *endpoint, struct fid_cq **queue)
{
	struct fid **words = (struct fid **)endpoint, *its;
	size_t i, count = malloc_usable_size(endpoint) / sizeof *words;
	struct fid_ep *shm = NULL;
	struct weft_looks l;

	if (weft_begin_looks(&l))
		return NULL;
	for (i = 0; i < count && !shm; i++) {
		if (!weft_is_inner(&l, &endpoint->fid, words[i], FI_CLASS_EP))
			continue;
		its = member(&l, &endpoint->fid, (struct fid_ep *)words[i], FI_CLASS_CQ);
		if (its && has(words, count, its)) {
			shm = (struct fid_ep *)words[i];
			*queue = (struct fid_cq *)its;
		}
	}
	weft_end_looks(&l);
	return shm;
}

struct fid_av *weft_inner_vector(struct fid *endpoint, struct fid_ep *shm)
{
	struct weft_looks l;
	struct fid *vector;

	if (weft_begin_looks(&l))
		return NULL;
	vector = member(&l, endpoint, shm, FI_CLASS_AV);
	weft_end_looks(&l);
	return (struct fid_av *)vector;
}

int weft_shm_is_gone(struct fid_av *vector, fi_addr_t peer)
{
	char name[256] = "/", path[64], line[256], *state;
	size_t length = sizeof name - 2;
	unsigned char begin[8];
	int32_t process;
	FILE *in;
	int file, size;

	if (!vector || fi_av_lookup(vector, peer, name + 1, &length))
		return 0;
	file = shm_open(name, O_RDONLY, 0);
	if (file < 0)
		return errno == ENOENT;
	size = (int)read(file, begin, sizeof begin);
	close(file);
	if (size != sizeof begin || begin[0] != LAYOUT)
		return 0;
	memcpy(&process, begin + 4, sizeof process);
	snprintf(path, sizeof path, "/proc/%d/stat", process);
	in = fopen(path, "re");
	if (!in)
		return errno == ENOENT || errno == ESRCH;
	// One that has ended stays until its parent has asked for it.
	state = fgets(line, sizeof line, in) ? strrchr(line, ')') : NULL;
	fclose(in);
	return state && (state[2] == 'Z' || state[2] == 'X');
}
