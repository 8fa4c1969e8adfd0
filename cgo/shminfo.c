//go:build linux

#define _GNU_SOURCE
#include "shminfo.h"
#include "mapped.h"
#include "shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

// Efa of libfabric 1.17 has the info of shm in a word of its own, and looks at it in each access
// to memory of a process of the host. A fi_getinfo that efa has nothing for frees the info and
// makes the word NULL, whoever has endpoints open: their next access ends the process. So the
// info is another while fi_getinfo runs, and what was there is put back.

static struct fi_info **place; // NULL: it is not known, or not needed
static struct fi_info *kept, *meanwhile; // what is in the word now and then; of weft's
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// is_of_shm says whether a word leads to an info of shm.
static int is_of_shm(const struct weft_looks *l, const struct fi_info *word)
{
	struct fi_info info;
	struct fi_fabric_attr attr;
	char name[4];

	return (uintptr_t)word >= 4096 && (uintptr_t)word % sizeof(void *) == 0 &&
	       weft_look(l, word, &info, sizeof info) && info.fabric_attr && info.domain_attr &&
	       weft_look(l, info.fabric_attr, &attr, sizeof attr) && attr.prov_name &&
	       weft_look(l, attr.prov_name, name, sizeof name) && !memcmp(name, "shm", sizeof name);
}

// find looks through what libfabric may write to. Its own infos, those of shm among them, are part
// of it.
static int find(struct dl_phdr_info *library, size_t size, void *code)
{
	struct weft_looks l;
	int i;

	(void)size;
	if (!weft_has(library, code, 1, PF_X))
		return 0;
	if (weft_begin_looks(&l))
		return 1;
	for (i = 0; i < library->dlpi_phnum && !place; i++) {
		const ElfW(Phdr) *h = &library->dlpi_phdr[i];
		struct fi_info **word = (struct fi_info **)(library->dlpi_addr + h->p_vaddr);
		struct fi_info **end = word + h->p_memsz / sizeof *word;

		if (h->p_type != PT_LOAD || !(h->p_flags & PF_W))
			continue;
		for (; word < end && !place; word++)
			if (!weft_has(library, *word, 1, 0) && is_of_shm(&l, *word))
				place = word;
	}
	weft_end_looks(&l);
	return 1;
}

void weft_keep_shm_info(void)
{
	pthread_mutex_lock(&lock);
	kept = place ? __atomic_load_n(place, __ATOMIC_ACQUIRE) : NULL;
	if (kept && !meanwhile)
		meanwhile = fi_dupinfo(kept);
	if (kept && meanwhile)
		__atomic_store_n(place, meanwhile, __ATOMIC_RELEASE);
}

// has_reliable says whether infos, if there are any, have endpoints that reach the host by shm.
static int has_reliable(const struct fi_info *info)
{
	for (; info; info = info->next)
		if (info->ep_attr->type == FI_EP_RDM && !strcmp(info->fabric_attr->prov_name, "efa"))
			return 1;
	return 0;
}

void weft_restore_shm_info(const struct fi_info *infos)
{
	static int looked;

	// If the other is not there any more, libfabric has freed it.
	if (kept && meanwhile &&
	    __atomic_exchange_n(place, kept, __ATOMIC_ACQ_REL) != meanwhile)
		meanwhile = NULL;
	// It is there once efa has had such an info to give, unless efa uses no shm.
	if (!looked && has_reliable(infos)) {
		looked = 1;
		dl_iterate_phdr(find, dlsym(RTLD_DEFAULT, "fi_getinfo"));
	}
	pthread_mutex_unlock(&lock);
}

int weft_keeps_shm_info(void)
{
	int keeps;

	pthread_mutex_lock(&lock);
	keeps = !!place;
	pthread_mutex_unlock(&lock);
	return keeps;
}
