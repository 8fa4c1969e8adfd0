//go:build linux

#define _GNU_SOURCE
#include "calls.h"
#include "mapped.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// table is where a table of a library is: the loader may have added where the library is, or not.
static const void *table(const struct dl_phdr_info *library, ElfW(Addr) value)
{
	return (const void *)(value < library->dlpi_addr ? value + library->dlpi_addr : value);
}

// give has a word of a library say where a function of this file is. The loader has taken the
// right to write there away where the library asks for that (PT_GNU_RELRO).
static int give(const struct dl_phdr_info *library, char *word, void (*ours)(void))
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	char *begin = (char *)((uintptr_t)word & ~(page - 1));
	size_t length = (size_t)(word + sizeof ours - begin);
	int i, relro = 0;

	// Of a page that is only partly of that kind it has not.
	for (i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &library->dlpi_phdr[i];
		const uintptr_t start = library->dlpi_addr + h->p_vaddr;

		relro |= h->p_type == PT_GNU_RELRO && (uintptr_t)begin >= (start & ~(page - 1)) &&
			 (uintptr_t)begin < ((start + h->p_memsz) & ~(page - 1));
	}
	if (relro && mprotect(begin, length, PROT_READ | PROT_WRITE))
		return 0;
	__atomic_store_n((uintptr_t *)word, (uintptr_t)ours, __ATOMIC_RELEASE);
	if (relro)
		mprotect(begin, length, PROT_READ);
	return 1;
}

struct wanted {
	const void *code; // of the library
	const struct weft_call *calls;
	int count;
};

// give_to does so in the table of what libfabric calls elsewhere, and returns how many were there.
static int give_to(struct dl_phdr_info *library, size_t size, void *argument)
{
	const struct wanted *wanted = argument;
	const ElfW(Dyn) *d = NULL;
	const ElfW(Sym) *symbols = NULL;
	const ElfW(Rela) *calls = NULL;
	const char *strings = NULL;
	const char *name;
	size_t i, count = 0;
	int k, given = 0;

	(void)size;
	if (!weft_has(library, wanted->code, 1, PF_X))
		return 0;
	for (i = 0; i < library->dlpi_phnum; i++)
		if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			symbols = table(library, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			strings = table(library, d->d_un.d_ptr);
		else if (d->d_tag == DT_JMPREL)
			calls = table(library, d->d_un.d_ptr);
		else if (d->d_tag == DT_PLTRELSZ)
			count = d->d_un.d_val / sizeof *calls;
		else if (d->d_tag == DT_PLTREL && d->d_un.d_val != DT_RELA)
			return 0;
	}
	for (i = 0; calls && symbols && strings && i < count; i++) {
		name = strings + symbols[ELF64_R_SYM(calls[i].r_info)].st_name;
		for (k = 0; k < wanted->count; k++)
			if (!strcmp(name, wanted->calls[k].name))
				given += give(library, (char *)library->dlpi_addr + calls[i].r_offset,
					      wanted->calls[k].ours);
	}
	return given;
}

int weft_replace_calls(const struct weft_call *calls, int count)
{
	struct wanted wanted = { dlsym(RTLD_DEFAULT, "fi_getinfo"), calls, count };

	return dl_iterate_phdr(give_to, &wanted);
}

uint64_t weft_inode(int fd)
{
	struct stat its;

	return fstat(fd, &its) ? 0 : (uint64_t)its.st_ino;
}
