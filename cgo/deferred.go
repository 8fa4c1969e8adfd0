//go:build linux

package cgo

/*
#include "deferred.h"
*/
import "C"

import "unsafe"

// FlagTrigger makes an operation wait for the condition in its context.
const FlagTrigger uint64 = C.FI_TRIGGER

// Work is an operation that a provider begins by itself when a counter has
// reached a threshold. It lives in C memory.
type Work struct{ c *C.struct_weft_work }

// NewWork makes room for an operation; ok is false when there is no memory.
func NewWork() (w Work, ok bool) {
	w.c = (*C.struct_weft_work)(allocate(PurposeDeferred, 1, C.sizeof_struct_weft_work))
	return w, w.c != nil
}

// Free releases the memory; the provider must not have the work any more.
func (w Work) Free() {
	release(PurposeDeferred, unsafe.Pointer(w.c), 1, C.sizeof_struct_weft_work)
}

// Op is the operation to fill in before Queue. Its slot and token do not count.
func (w Work) Op() *Op { return (*Op)(unsafe.Pointer(&w.c.op)) }

// Extra is the rest of the operation, and always counts.
func (w Work) Extra() *Extra { return (*Extra)(unsafe.Pointer(&w.c.extra)) }

// Queue hands the operation to the domain (FI_QUEUE_WORK). The provider adds 1
// to done when it is complete.
func (w Work) Queue(d Domain, e Endpoint, trigger Counter, threshold uint64, done Counter) Code {
	return codeOf(C.weft_work_queue(d.p, w.c, e.p, trigger.p, C.uint64_t(threshold), done.p))
}

// QueueAdd makes the domain add to a counter (FI_QUEUE_WORK, FI_OP_CNTR_ADD).
func (w Work) QueueAdd(d Domain, trigger Counter, threshold uint64, counter Counter, value uint64) Code {
	return codeOf(C.weft_work_queue_counter(d.p, w.c, trigger.p, C.uint64_t(threshold), counter.p, 0, C.uint64_t(value)))
}

// QueueSet makes the domain set a counter (FI_QUEUE_WORK, FI_OP_CNTR_SET).
func (w Work) QueueSet(d Domain, trigger Counter, threshold uint64, counter Counter, value uint64) Code {
	return codeOf(C.weft_work_queue_counter(d.p, w.c, trigger.p, C.uint64_t(threshold), counter.p, 1, C.uint64_t(value)))
}

// Cancel takes back work that has not begun (FI_CANCEL_WORK).
func (w Work) Cancel(d Domain) Code { return codeOf(C.weft_work_cancel(d.p, w.c)) }

// CancelStarted asks the endpoint for the end of an operation that has begun
// (fi_cancel).
func (w Work) CancelStarted(e Endpoint) Code {
	return codeOf(C.weft_work_cancel_started(w.c, e.p))
}

// FlushWork takes back all work that has not begun (FI_FLUSH_WORK).
func (d Domain) FlushWork() Code { return codeOf(C.weft_work_flush(d.p)) }

// Trigger puts a condition into the context with the index, for an operation
// with FlagTrigger.
func (s Slots) Trigger(index int, c Counter, threshold uint64) {
	slot := unsafe.Add(s.base, uintptr(index)*C.sizeof_struct_weft_slot)
	C.weft_slot_trigger((*C.struct_weft_slot)(slot), c.p, C.uint64_t(threshold))
}
