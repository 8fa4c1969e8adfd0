//go:build linux

package cgo

/*
#include "contexts.h"
*/
import "C"

// SharedContext as a number of contexts says that the endpoint uses one that it
// shares with others.
var SharedContext = uint64(C.weft_shared_context())

// SharedTransmit is a fid_stx.
type SharedTransmit struct{ p *C.struct_fid_stx }

// SetContexts writes the numbers of contexts into the info.
func (i Info) SetContexts(transmit, receive uint64) {
	C.weft_set_contexts(i.p, C.uint64_t(transmit), C.uint64_t(receive))
}

// SetAddressFormat writes the format of addresses into the info.
func (i Info) SetAddressFormat(format uint32) { i.p.addr_format = C.uint32_t(format) }

// OpenScalableEndpoint makes an endpoint with the contexts that the info says.
//
// Implements: int fi_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context)
func (d Domain) OpenScalableEndpoint(i Info) (e Endpoint, code Code) {
	code = codeOf(C.weft_scalable_ep(d.p, i.p, &e.p))
	return e, code
}

// BindScalableVector binds an address vector to a scalable endpoint.
//
// Implements: int fi_scalable_ep_bind(struct fid_ep *sep, struct fid *bfid, uint64_t flags)
func (e Endpoint) BindScalableVector(v AddressVector) Code {
	return codeOf(C.weft_scalable_bind(e.p, &v.p.fid))
}

// BindScalableEvents binds an event queue to it (fi_scalable_ep_bind).
func (e Endpoint) BindScalableEvents(q EventQueue) Code {
	return codeOf(C.weft_scalable_bind(e.p, &q.p.fid))
}

// OpenTransmit opens one of its transmit contexts.
//
// Implements: int fi_tx_context(struct fid_ep *ep, int idx, struct fi_tx_attr *attr, struct fid_ep **tx_ep, void *context)
func (e Endpoint) OpenTransmit(index int, i Info) (t Endpoint, code Code) {
	code = codeOf(C.weft_tx_context(e.p, C.int(index), i.p, &t.p))
	return t, code
}

// OpenReceive opens one of its receive contexts.
//
// Implements: int fi_rx_context(struct fid_ep *ep, int idx, struct fi_rx_attr *attr, struct fid_ep **rx_ep, void *context)
func (e Endpoint) OpenReceive(index int, i Info) (r Endpoint, code Code) {
	code = codeOf(C.weft_rx_context(e.p, C.int(index), i.p, &r.p))
	return r, code
}

// ReceiveAddress names one of a peer's receive contexts.
//
// Implements: fi_addr_t fi_rx_addr(fi_addr_t fi_addr, int rx_index, int rx_ctx_bits)
func ReceiveAddress(peer uint64, index, bits int) uint64 {
	return uint64(C.weft_rx_addr(C.uint64_t(peer), C.int(index), C.int(bits)))
}

// OpenSharedTransmit opens a transmit context for several endpoints.
//
// Implements: int fi_stx_context(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context)
func (d Domain) OpenSharedTransmit(i Info) (s SharedTransmit, code Code) {
	code = codeOf(C.weft_stx_context(d.p, i.p, &s.p))
	return s, code
}

// OpenSharedReceive opens a receive context for several endpoints.
//
// Implements: int fi_srx_context(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep, void *context)
func (d Domain) OpenSharedReceive(i Info) (s Endpoint, code Code) {
	code = codeOf(C.weft_srx_context(d.p, i.p, &s.p))
	return s, code
}

// Close closes the shared context (fi_close).
func (s SharedTransmit) Close() Code { return codeOf(C.weft_close(&s.p.fid)) }

// BindSharedTransmit makes the endpoint send through the context (fi_ep_bind).
func (e Endpoint) BindSharedTransmit(s SharedTransmit) Code {
	return codeOf(C.weft_ep_bind(e.p, &s.p.fid, 0))
}

// BindSharedReceive makes the endpoint receive into the context (fi_ep_bind).
func (e Endpoint) BindSharedReceive(s Endpoint) Code {
	return codeOf(C.weft_ep_bind(e.p, &s.p.fid, 0))
}

// Alias makes another name of the endpoint, with operation flags of its own.
//
// Implements: int fi_ep_alias(struct fid_ep *ep, struct fid_ep **alias_ep, uint64_t flags)
// Implements: int fi_alias(struct fid *fid, struct fid **alias_fid, uint64_t flags)
func (e Endpoint) Alias(flags uint64) (a Endpoint, code Code) {
	code = codeOf(C.weft_alias(e.p, C.uint64_t(flags), &a.p))
	return a, code
}

// OperationFlags are what operations have by default; direction is BindTransmit
// or BindReceive (fi_control with FI_GETOPSFLAG).
func (e Endpoint) OperationFlags(direction uint64) (uint64, Code) {
	flags := C.uint64_t(direction)
	code := codeOf(C.weft_get_op_flags(e.p, &flags))
	return uint64(flags), code
}

// SetOperationFlags sets them; flags include the direction (fi_control with
// FI_SETOPSFLAG).
func (e Endpoint) SetOperationFlags(flags uint64) Code {
	return codeOf(C.weft_set_op_flags(e.p, C.uint64_t(flags)))
}
