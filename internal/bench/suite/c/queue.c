#include "twin.h"

#include <string.h>

static void fail_with_error_entry(struct port *port)
{
	struct fi_cq_err_entry e;

	memset(&e, 0, sizeof e);
	if (fi_cq_readerr(port->cq, &e, 0) == 1)
		die("an operation failed", e.err);
	die("fi_cq_readerr has no entry", 0);
}

int poll_queue(struct port *port, struct fi_cq_tagged_entry *entries)
{
	fi_addr_t sources[BATCH];
	ssize_t ret = fi_cq_readfrom(port->cq, entries, BATCH, sources);

	if (ret > 0)
		return (int)ret;
	if (ret == -FI_EAVAIL)
		fail_with_error_entry(port);
	if (ret != 0 && ret != -FI_EAGAIN && ret != -FI_EINTR)
		die("fi_cq_readfrom", (int)ret);
	check_deadline();
	return 0;
}

int read_queue(struct port *port, struct fi_cq_tagged_entry *entries)
{
	fi_addr_t sources[BATCH];
	ssize_t ret;
	int n;

	for (;;) {
		n = poll_queue(port, entries);
		if (n)
			return n;
		if (!port->block)
			continue;
		ret = fi_cq_sreadfrom(port->cq, entries, BATCH, sources, NULL, 100);
		if (ret > 0)
			return (int)ret;
		if (ret == -FI_EAVAIL)
			fail_with_error_entry(port);
		if (ret != 0 && ret != -FI_EAGAIN && ret != -FI_EINTR)
			die("fi_cq_sreadfrom", (int)ret);
	}
}
