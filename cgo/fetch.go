//go:build linux

package cgo

/*
#include "fetch.h"
#include "segments.h"
*/
import "C"

// GuardFetches has an enabled endpoint of ofi_rxm say in Op.Result how many messages a
// receive got whose sender is gone; without it they end the process. It says whether
// libfabric has what that needs.
func (e Endpoint) GuardFetches() bool { return C.weft_guard_fetches(e.p) != 0 }

// MarkMessages has a domain of ofi_rxm, of which nothing was opened yet, know by which
// connection a message came, so that GuardFetches also finds those whose connection's place
// another has, and keep what it registers for messages. It says whether the domain below was found.
func (d Domain) MarkMessages() bool { return C.weft_mark_messages(d.p) != 0 }

// CloseRegistrations closes what such a domain has registered for messages that did not come to
// their end, and returns how many there were, or an error. Everything else of the domain
// is closed.
func (d Domain) CloseRegistrations() int { return int(C.weft_close_registrations(d.p)) }

// NoPlaceForMarks is called before MarkMessages where buffers have no place for a mark: what
// is known then, of all domains, is which connections have ended.
func NoPlaceForMarks() { C.weft_no_place_for_marks() }

// EndSegments has messages of which an endpoint of ofi_rxm has got some segments, and not all, end
// with the next turns of its queue, as if their senders had, and returns how many there are.
func (e Endpoint) EndSegments() int { return int(C.weft_end_segments(e.p)) }

// AmidSegments says whether any endpoint of ofi_rxm has got some segments of a message, and not all.
func AmidSegments() bool { return C.weft_amid_segments() != 0 }

// SendUnsegmented has an enabled endpoint of ofi_rxm, which sends at once what is no longer
// than the limit, or than the buffers that it has posted, send nothing in segments. It says
// whether that was found to do.
func (e Endpoint) SendUnsegmented(eagerLimit uint64) bool {
	return C.weft_send_unsegmented(e.p, C.uint64_t(eagerLimit)) != 0
}
