//go:build linux

package cgo

/*
#include "unreceived.h"
*/
import "C"

// Unreceived is what a shared receive context of sockets has of messages that are arriving, or that
// nobody has received.
type Unreceived struct {
	shared *C.struct_fid_ep
	list   C.ptrdiff_t
}

// UnreceivedOf finds it in a context that was just opened. It is not ok where libfabric has made
// the context in another way.
func UnreceivedOf(shared Endpoint) (u Unreceived, ok bool) {
	u = Unreceived{shared.p, C.weft_unreceived_list(shared.p)}
	return u, u.list != 0
}

// Arriving says whether something is arriving for an endpoint whose connections have ended, or is
// still to be answered: an answer that a connection did not take before it ended goes to the socket
// nobody, which is libfabric's if it was taken.
func (u Unreceived) Arriving(e Endpoint, nobody int) (arriving, taken bool) {
	what := C.weft_is_arriving(u.shared, u.list, e.p, C.int(nobody))
	return what != C.WEFT_ARRIVES_NOT, what == C.WEFT_ANSWERS_NOBODY
}

// RefersTo says whether something there may refer to an endpoint whose connections have ended.
func (u Unreceived) RefersTo(e Endpoint) bool {
	return C.weft_refers_to(u.shared, u.list, e.p) != 0
}
