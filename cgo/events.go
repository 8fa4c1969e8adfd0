//go:build linux

package cgo

/*
#cgo noescape weft_eq_read
#cgo nocallback weft_eq_read
#include "events.h"
#include "eventbound.h"
*/
import "C"

// Events of an event queue.
const (
	EventNotify       uint32 = C.FI_NOTIFY
	EventRequest      uint32 = C.FI_CONNREQ
	EventConnected    uint32 = C.FI_CONNECTED
	EventShutdown     uint32 = C.FI_SHUTDOWN
	EventRegion       uint32 = C.FI_MR_COMPLETE
	EventAddresses    uint32 = C.FI_AV_COMPLETE
	EventJoined       uint32 = C.FI_JOIN_COMPLETE
	FlagWriteEvents   uint64 = C.FI_WRITE // for OpenEventQueue: Notify is wanted
	MostEventDataSize        = C.WEFT_EVENT_DATA
)

// OpenEventQueue opens an event queue.
//
// Implements: int fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context)
func (f Fabric) OpenEventQueue(size, wait int, flags uint64) (q EventQueue, code Code) {
	code = codeOf(C.weft_eq_open(f.p, C.uint64_t(size), C.int(wait), C.uint64_t(flags), &q.p))
	return q, code
}

// TryWaitEvents says with 0 that blocking on the queue's descriptor is safe,
// with Again that something is there to be read (fi_trywait).
func (f Fabric) TryWaitEvents(q EventQueue) Code {
	return codeOf(C.weft_trywait(f.p, &q.p.fid))
}

// EventBuffer is where Read puts an event. It may be used again and again.
type EventBuffer struct{ c C.struct_weft_event }

// Kind is the event's kind; it means nothing if Err is not 0.
func (b *EventBuffer) Kind() uint32 { return uint32(b.c.event) }

// Err is 0, or a code: the event is an error.
func (b *EventBuffer) Err() int { return int(b.c.err) }

// ProviderErrno is the provider's own code for an error.
func (b *EventBuffer) ProviderErrno() int32 { return int32(b.c.prov_errno) }

// Text is the provider's own words for an error, or empty.
func (b *EventBuffer) Text() string { return C.GoString(&b.c.text[0]) }

// Object is the identity of what the event is about.
func (b *EventBuffer) Object() uintptr { return uintptr(b.c.object) }

// Context and Data are the event's members of these names.
func (b *EventBuffer) Context() uintptr { return uintptr(b.c.context) }

// Data is the event's number.
func (b *EventBuffer) Data() uint64 { return uint64(b.c.data) }

// Info is that of a connection request, to be freed by the caller.
func (b *EventBuffer) Info() (i Info, ok bool) {
	// The buffer has a number, because it lives in Go memory.
	i.p = C.weft_event_info(&b.c)
	return i, i.p != nil
}

// Bytes copies what the peer said.
func (b *EventBuffer) Bytes() []byte {
	if b.c.length == 0 {
		return nil
	}
	bytes := make([]byte, b.c.length)
	for i := range bytes {
		bytes[i] = byte(b.c.bytes[i])
	}
	return bytes
}

// Read takes one event, and says whether there was one.
//
// Implements: ssize_t fi_eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
// Implements: ssize_t fi_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
// Implements: const char *fi_eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf, size_t len)
func (q EventQueue) Read(b *EventBuffer) (ok bool, code Code) {
	ret := C.weft_eq_read(q.p, &b.c)
	return ret > 0, codeOf(ret)
}

// Wait blocks until there may be something to read, or the time is up.
//
// Implements: ssize_t fi_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout, uint64_t flags)
func (q EventQueue) Wait(timeoutMS int) Code {
	return codeOf(C.weft_eq_wait(q.p, C.int(timeoutMS)))
}

// Notify puts an event of the program's own into the queue.
//
// Implements: ssize_t fi_eq_write(struct fid_eq *eq, uint32_t event, const void *buf, size_t len, uint64_t flags)
func (q EventQueue) Notify(data uint64) Code {
	return codeOf(C.weft_eq_notify(q.p, C.uint64_t(data)))
}

// WaitDescriptor returns the file descriptor to block on (fi_control with
// FI_GETWAIT).
func (q EventQueue) WaitDescriptor() (int, Code) {
	var fd C.int
	code := codeOf(C.weft_wait_fd(&q.p.fid, &fd))
	return int(fd), code
}

// Close closes the event queue (fi_close).
func (q EventQueue) Close() Code { return codeOf(C.weft_eq_close(q.p)) }

// Bound has a queue of efa's that was just opened keep so many errors that were not read, and
// drop what comes then: anybody can send what brings about another.
func (q EventQueue) Bound(most int) Code { return codeOf(C.weft_eq_bound(q.p, C.uint64_t(most))) }

// Dropped counts what Bound has had dropped.
func (q EventQueue) Dropped() uint64 { return uint64(C.weft_eq_dropped(q.p)) }
