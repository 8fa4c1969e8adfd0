//go:build linux

#define _GNU_SOURCE
#include "mapped.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

int weft_has(const struct dl_phdr_info *library, const void *begin, size_t size,
	     uint32_t flags)
{
	int i;

	for (i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &library->dlpi_phdr[i];
		uintptr_t offset = (uintptr_t)begin - library->dlpi_addr - h->p_vaddr;

		if (h->p_type == PT_LOAD && (h->p_flags & flags) == flags &&
		    size <= h->p_memsz && offset <= h->p_memsz - size)
			return 1;
	}
	return 0;
}

static int has_code(struct dl_phdr_info *library, size_t size, void *code)
{
	(void)size;
	return weft_has(library, code, 1, PF_X);
}

int weft_is_code(const void *code)
{
	return code && dl_iterate_phdr(has_code, (void *)code);
}

static int copied(const void *from, void *to, size_t size)
{
	const struct iovec its = { (void *)from, size }, ours = { to, size };

	return process_vm_readv(getpid(), &ours, 1, &its, 1, 0) == (ssize_t)size;
}

int weft_begin_looks(struct weft_looks *l)
{
	char c = 0, its;

	l->pipe[0] = l->pipe[1] = -1;
	// Some containers forbid it.
	return copied(&c, &its, 1) ? 0 : pipe2(l->pipe, O_CLOEXEC | O_NONBLOCK);
}

// The kernel says that there is nothing, where this process would end. AddressSanitizer
// would say for it, of write, that what is looked at is nobody's.
int weft_look(const struct weft_looks *l, const void *from, void *to, size_t size)
{
	if (l->pipe[0] < 0)
		return copied(from, to, size);
	return syscall(SYS_write, l->pipe[1], from, size) == (long)size &&
	       read(l->pipe[0], to, size) == (ssize_t)size;
}

void weft_end_looks(struct weft_looks *l)
{
	if (l->pipe[0] < 0)
		return;
	close(l->pipe[0]);
	close(l->pipe[1]);
}
