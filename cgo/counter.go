//go:build linux

package cgo

/*
#include "counter.h"
*/
import "C"

// Counter is a fid_cntr.
type Counter struct{ p *C.struct_fid_cntr }

// Events that a counter of an endpoint counts, by libfabric's names.
const (
	CountSends        uint64 = C.FI_SEND
	CountReceives     uint64 = C.FI_RECV
	CountReads        uint64 = C.FI_READ
	CountWrites       uint64 = C.FI_WRITE
	CountRemoteReads  uint64 = C.FI_REMOTE_READ
	CountRemoteWrites uint64 = C.FI_REMOTE_WRITE
)

// Codes that a wait for a counter may end with.
const (
	TimedOut       Code = C.FI_ETIMEDOUT
	ErrorAvailable Code = C.FI_EAVAIL
	Interrupted    Code = C.FI_EINTR
	NoKey          Code = C.FI_ENOKEY
	BadState       Code = C.FI_EOPBADSTATE
)

// OpenCounter opens a counter of completions.
//
// Implements: int fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context)
func (d Domain) OpenCounter(wait int) (c Counter, code Code) {
	code = codeOf(C.weft_cntr_open(d.p, C.int(wait), &c.p))
	return c, code
}

// Close closes the counter (fi_close).
func (c Counter) Close() Code { return codeOf(C.weft_close(&c.p.fid)) }

// Read returns the value.
//
// Implements: uint64_t fi_cntr_read(struct fid_cntr *cntr)
func (c Counter) Read() uint64 { return uint64(C.fi_cntr_read(c.p)) }

// ReadErrors returns the number of operations that failed.
//
// Implements: uint64_t fi_cntr_readerr(struct fid_cntr *cntr)
func (c Counter) ReadErrors() uint64 { return uint64(C.fi_cntr_readerr(c.p)) }

// Add adds to the value.
//
// Implements: int fi_cntr_add(struct fid_cntr *cntr, uint64_t value)
func (c Counter) Add(n uint64) Code { return codeOf(C.weft_cntr_add(c.p, C.uint64_t(n))) }

// AddErrors adds to the number of errors.
//
// Implements: int fi_cntr_adderr(struct fid_cntr *cntr, uint64_t value)
func (c Counter) AddErrors(n uint64) Code { return codeOf(C.weft_cntr_adderr(c.p, C.uint64_t(n))) }

// Set sets the value.
//
// Implements: int fi_cntr_set(struct fid_cntr *cntr, uint64_t value)
func (c Counter) Set(n uint64) Code { return codeOf(C.weft_cntr_set(c.p, C.uint64_t(n))) }

// SetErrors sets the number of errors.
//
// Implements: int fi_cntr_seterr(struct fid_cntr *cntr, uint64_t value)
func (c Counter) SetErrors(n uint64) Code { return codeOf(C.weft_cntr_seterr(c.p, C.uint64_t(n))) }

// Wait blocks until the value has reached the threshold, an error was counted or
// the time is over. What it returns is a hint: sockets and the others disagree.
//
// Implements: int fi_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout)
func (c Counter) Wait(threshold uint64, timeoutMS int) Code {
	return codeOf(C.weft_cntr_wait(c.p, C.uint64_t(threshold), C.int(timeoutMS)))
}

// BindCounter lets the counter count the endpoint's events (fi_ep_bind).
func (e Endpoint) BindCounter(c Counter, events uint64) Code {
	return codeOf(C.weft_ep_bind(e.p, &c.p.fid, C.uint64_t(events)))
}
