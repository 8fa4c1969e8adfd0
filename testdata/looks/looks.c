// Looks at memory that is there, that was unmapped, and that ends amid what is looked at.
#define _GNU_SOURCE
#include "mapped.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

// Has the name of process_vm_readv where that is forbidden.
ssize_t refused(pid_t process, const struct iovec *to, unsigned long count, const struct iovec *from,
		unsigned long others, unsigned long flags)
{
	(void)process, (void)to, (void)count, (void)from, (void)others, (void)flags;
	return -1;
}

static int expect(const char *what, int is, int should)
{
	if (is != should)
		printf("%s: %d, and should be %d\n", what, is, should);
	return is == should;
}

int main(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char seen[64];
	struct weft_looks l;
	int good = 1, i;

	if (memory == MAP_FAILED || munmap(memory + page, page) || weft_begin_looks(&l))
		return 1;
	memset(memory, 7, page);
	// None of what is refused is in the way of the next.
	for (i = 0; i < 3; i++) {
		memset(seen, 0, sizeof seen);
		good &= expect("there", weft_look(&l, memory + page - sizeof seen, seen, sizeof seen), 1);
		good &= expect("the last byte", seen[sizeof seen - 1], 7);
		good &= expect("unmapped", weft_look(&l, memory + page, seen, sizeof seen), 0);
		good &= expect("amid", weft_look(&l, memory + page - 8, seen, sizeof seen), 0);
		good &= expect("no address", weft_look(&l, NULL, seen, sizeof seen), 0);
	}
	weft_end_looks(&l);
	puts(good ? "ok" : "not ok");
	return !good;
}
