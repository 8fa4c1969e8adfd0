/* Everything is hidden but the functions of libibverbs and libefa that programs
 * call. */
#ifndef EXPORT_H
#define EXPORT_H

#define EXPORT __attribute__((visibility("default")))

#endif
