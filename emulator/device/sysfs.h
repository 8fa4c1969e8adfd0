/* The part of /sys that the efa provider reads about a device: the version of
 * the verbs, and the device's place on the PCI bus and its driver. It is a folder
 * in /tmp while a list of devices is held, which is when the provider looks. */
#ifndef SYSFS_H
#define SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/* sysfs_root is where SYSFS_PATH points to. */
const char *sysfs_root(void);

/* sysfs_paths writes where a device's entries will be. */
void sysfs_paths(unsigned index, const char *name, char *verbs, char *device, size_t room);

/* sysfs_make makes the folder, or counts one more that needs it; sysfs_done
 * removes it after the last. */
bool sysfs_make(unsigned devices);
void sysfs_done(void);

/* sysfs_remove removes what this process left. */
void sysfs_remove(void);

#endif
