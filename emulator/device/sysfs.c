#include "sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char root[256];
static pid_t owner; /* of the folder, while there is one; a fork's child is not */
static unsigned holders;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The name is known and told before main, when no other thread can be reading
 * the environment: a Go program has many by the time it asks for devices. */
__attribute__((constructor)) static void announce(void)
{
	const char *tmp = getenv("TMPDIR");
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!tmp || *tmp != '/' || strlen(tmp) > 128)
		tmp = "/tmp";
	snprintf(root, sizeof(root), "%s/weft-efa-%d-%llx", tmp, (int)getpid(),
		 (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec);
	setenv("SYSFS_PATH", root, 1);
}

const char *sysfs_root(void)
{
	return root;
}

void sysfs_paths(unsigned index, const char *name, char *verbs, char *device, size_t room)
{
	snprintf(verbs, room, "%.160s/class/infiniband_verbs/uverbs%u", root, index);
	snprintf(device, room, "%.160s/class/infiniband/%s", root, name);
}

static bool folder(const char *under)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", root, under);
	return !mkdir(path, 0700);
}

static bool link_to(const char *to, const char *under)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", root, under);
	return !symlink(to, path);
}

static bool version(void)
{
	char path[512];
	bool written;
	int fd;

	snprintf(path, sizeof(path), "%s/class/infiniband_verbs/abi_version", root);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	written = write(fd, "6\n", 2) == 2;
	return !close(fd) && written;
}

static bool device_entry(unsigned index)
{
	char path[128], to[128];

	snprintf(path, sizeof(path), "/devices/0000:%02x:00.0", index + 1);
	if (!folder(path))
		return false;
	snprintf(path, sizeof(path), "/devices/0000:%02x:00.0/driver", index + 1);
	if (!link_to("../../drivers/efa", path))
		return false;
	snprintf(path, sizeof(path), "/class/infiniband/rdmap%us0", index);
	if (!folder(path))
		return false;
	snprintf(path, sizeof(path), "/class/infiniband/rdmap%us0/device", index);
	snprintf(to, sizeof(to), "../../../devices/0000:%02x:00.0", index + 1);
	return link_to(to, path);
}

static bool make(unsigned devices)
{
	if (!folder("") || !folder("/class") || !folder("/class/infiniband_verbs") ||
	    !folder("/class/infiniband") || !folder("/devices") || !folder("/drivers") ||
	    !folder("/drivers/efa") || !version())
		return false;
	for (unsigned i = 0; i < devices; i++)
		if (!device_entry(i))
			return false;
	return true;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)info, (void)type, (void)walk;
	return remove(path);
}

static void remove_all(void)
{
	if (owner == getpid())
		nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	owner = 0;
	holders = 0;
}

bool sysfs_make(unsigned devices)
{
	bool made = true;

	pthread_mutex_lock(&lock);
	if (owner != getpid()) {
		/* A fork's child uses the parent's name, and so its folder if that
		 * is there. */
		holders = 0;
		owner = getpid();
		made = make(devices);
		if (!made && errno == EEXIST) {
			owner = 0;
			made = true;
		}
	}
	if (made)
		holders++;
	else
		remove_all();
	pthread_mutex_unlock(&lock);
	return made;
}

void sysfs_done(void)
{
	pthread_mutex_lock(&lock);
	if (holders && !--holders)
		remove_all();
	pthread_mutex_unlock(&lock);
}

void sysfs_remove(void)
{
	pthread_mutex_lock(&lock);
	remove_all();
	pthread_mutex_unlock(&lock);
}
