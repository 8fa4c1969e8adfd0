/* The end of the process. */
#include "counters.h"
#include "sysfs.h"

/* A program may leave without this, as Go's os.Exit does: nothing may depend on
 * it. What is lost then are the counters on the standard error. */
__attribute__((destructor)) static void leave(void)
{
	if (counters_read(COUNTER_PACKETS_SENT) || counters_read(COUNTER_PACKETS_RECEIVED))
		counters_report(1);
	sysfs_remove();
}
