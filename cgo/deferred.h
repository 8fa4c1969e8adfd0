// Triggered operations and deferred work: operations that begin when a counter
// has reached a threshold.
#ifndef WEFT_DEFERRED_H
#define WEFT_DEFERRED_H

#include <rdma/fi_trigger.h>

#include "shim.h"

// Everything that a provider may look at until the work is done or cancelled.
// work comes first: its context is what completions name.
struct weft_work {
	struct fi_deferred_work work;
	struct weft_op op;
	struct weft_extra extra;
	union {
		struct fi_op_msg msg;
		struct fi_op_tagged tagged;
		struct fi_op_rma rma;
		struct fi_op_atomic atomic;
		struct fi_op_fetch_atomic fetch;
		struct fi_op_compare_atomic compare;
		struct fi_op_cntr cntr;
	} call;
	struct iovec one;
	void *desc, *result_desc, *compare_desc;
	struct fi_rma_iov remote;
	struct fi_ioc values[WEFT_VECTORS], result, compare;
	struct fi_rma_ioc remote_value;
};

int weft_work_queue(struct fid_domain *domain, struct weft_work *w,
		    struct fid_ep *ep, struct fid_cntr *trigger,
		    uint64_t threshold, struct fid_cntr *done);
int weft_work_queue_counter(struct fid_domain *domain, struct weft_work *w,
			    struct fid_cntr *trigger, uint64_t threshold,
			    struct fid_cntr *counter, int set, uint64_t value);
int weft_work_cancel(struct fid_domain *domain, struct weft_work *w);
int weft_work_flush(struct fid_domain *domain);
int weft_work_cancel_started(struct weft_work *w, struct fid_ep *ep);
void weft_slot_trigger(struct weft_slot *slot, struct fid_cntr *trigger,
		       uint64_t threshold);

#endif
