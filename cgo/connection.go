//go:build linux

package cgo

/*
#include "callers.h"
#include "connection.h"
#include "datagrams.h"
#include "introductions.h"
#include "listening.h"
#include "ownconnection.h"
*/
import "C"

import "unsafe"

// PassiveEndpoint is a fid_pep.
type PassiveEndpoint struct{ p *C.struct_fid_pep }

// pointer is what C gets for bytes that it only reads; none is NULL.
func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// OpenPassiveEndpoint makes an endpoint that listens at the info's source.
//
// Implements: int fi_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context)
func (f Fabric) OpenPassiveEndpoint(i Info) (p PassiveEndpoint, code Code) {
	code = codeOf(C.weft_passive_ep(f.p, i.p, &p.p))
	return p, code
}

// Identity is what Object of an event about the endpoint is.
func (p PassiveEndpoint) Identity() uintptr { return uintptr(unsafe.Pointer(&p.p.fid)) }

// BindEventQueue says where connection requests go.
//
// Implements: int fi_pep_bind(struct fid_pep *pep, struct fid *bfid, uint64_t flags)
func (p PassiveEndpoint) BindEventQueue(q EventQueue) Code {
	return codeOf(C.weft_pep_bind(p.p, &q.p.fid))
}

// SetBacklog says how many requests may wait (fi_control with FI_BACKLOG).
func (p PassiveEndpoint) SetBacklog(n int) Code { return codeOf(C.weft_backlog(p.p, C.int(n))) }

// Listen lets peers connect.
//
// Implements: int fi_listen(struct fid_pep *pep)
func (p PassiveEndpoint) Listen() Code { return codeOf(C.weft_listen(p.p)) }

// Reject refuses the request that came with the info, which is then void.
//
// Implements: int fi_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
func (p PassiveEndpoint) Reject(i Info, data []byte) Code {
	return codeOf(C.weft_reject(p.p, i.p, pointer(data), C.uint64_t(len(data))))
}

// Name returns where the endpoint listens (fi_getname).
func (p PassiveEndpoint) Name() ([]byte, Code) { return nameOf(&p.p.fid) }

// SetName says where it is to listen (fi_setname).
func (p PassiveEndpoint) SetName(address []byte) Code { return setName(&p.p.fid, address) }

// Close closes the endpoint (fi_close).
func (p PassiveEndpoint) Close() Code {
	code := codeOf(C.weft_close(&p.p.fid))
	if code == 0 {
		C.weft_hang_up(p.p)
	}
	return code
}

// OwnsConnection says of what a set of epoll has for a connection of tcp or net whether that is of the
// endpoint.
func (e Endpoint) OwnsConnection(data uintptr) bool {
	return C.weft_owns_connection(e.p, C.uintptr_t(data)) != 0
}

// DoubtCallers has libfabric hear of who calls, or answers, an endpoint of sockets only what a peer
// can say at first: of endpoints whose calls are those that say Doubting. It says whether that can be done.
func DoubtCallers() bool { return C.weft_doubt_callers() == 0 }

// EnableDoubting is Enable of sockets.
func (e Endpoint) EnableDoubting() Code { return codeOf(C.weft_enable_listening(e.p)) }

// EnableListening is Enable of ofi_rxm, for libfabric 2. An endpoint that cannot listen is not enabled, and
// can be closed.
func (e Endpoint) EnableListening() Code { return codeOf(C.weft_enable_that_listens(e.p)) }

// DoubtDatagrams has endpoints of ofi_rxd that are opened and enabled by the next two get no datagram
// but those of peers. It says whether that can be done.
func DoubtDatagrams() bool { return C.weft_doubt_datagrams() == 0 }

// OpenDatagramEndpoint is OpenEndpoint of ofi_rxd.
func (d Domain) OpenDatagramEndpoint(i Info, mode int32, receiveCaps uint64) (e Endpoint, code Code) {
	code = codeOf(C.weft_datagram_endpoint(d.p, i.p, C.uint64_t(mode), C.uint64_t(receiveCaps), &e.p))
	return e, code
}

// EnableDatagrams is Enable of ofi_rxd.
func (e Endpoint) EnableDatagrams() Code { return codeOf(C.weft_datagram_enable(e.p)) }

// ListenDoubting is Listen of sockets.
func (p PassiveEndpoint) ListenDoubting() Code { return codeOf(C.weft_listens(p.p)) }

// SetNameDoubting is SetName of sockets.
func (p PassiveEndpoint) SetNameDoubting(address []byte) Code {
	return codeOf(C.weft_sets_name(p.p, pointer(address), C.uint64_t(len(address))))
}

// ConnectDoubting is Connect of sockets.
func (e Endpoint) ConnectDoubting(address, data []byte) Code {
	return codeOf(C.weft_connect_listening(e.p, pointer(address), pointer(data), C.uint64_t(len(data))))
}

// AcceptDoubting is Accept of sockets.
func (e Endpoint) AcceptDoubting(data []byte) Code {
	return codeOf(C.weft_accept_listening(e.p, pointer(data), C.uint64_t(len(data))))
}

// SetNameDoubting is SetName of sockets.
func (e Endpoint) SetNameDoubting(address []byte) Code {
	return codeOf(C.weft_name_listening(e.p, pointer(address), C.uint64_t(len(address))))
}

// Identity is what Object of an event about the endpoint is.
func (e Endpoint) Identity() uintptr { return uintptr(unsafe.Pointer(&e.p.fid)) }

// Connect asks the peer at the address for a connection. The address must be as
// long as its format says.
//
// Implements: int fi_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
func (e Endpoint) Connect(address, data []byte) Code {
	return codeOf(C.weft_connect(e.p, pointer(address), pointer(data), C.uint64_t(len(data))))
}

// Accept answers the request whose info the endpoint was opened with.
//
// Implements: int fi_accept(struct fid_ep *ep, const void *param, size_t paramlen)
func (e Endpoint) Accept(data []byte) Code {
	return codeOf(C.weft_accept(e.p, pointer(data), C.uint64_t(len(data))))
}

// Shutdown ends the connection.
//
// Implements: int fi_shutdown(struct fid_ep *ep, uint64_t flags)
func (e Endpoint) Shutdown() Code { return codeOf(C.weft_shutdown(e.p)) }

// Peer returns the address of the other side of the connection.
//
// Implements: int fi_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
func (e Endpoint) Peer() ([]byte, Code) {
	buf := make([]byte, nameRoom)
	n := C.uint64_t(len(buf))
	code := codeOf(C.weft_getpeer(e.p, pointer(buf), &n))
	return named(buf, n, code)
}

// SetName gives the endpoint an address of its own.
//
// Implements: int fi_setname(fid_t fid, void *addr, size_t addrlen)
func (e Endpoint) SetName(address []byte) Code { return setName(&e.p.fid, address) }

// nameRoom is more than any address has.
const nameRoom = 256

func nameOf(fid *C.struct_fid) ([]byte, Code) {
	buf := make([]byte, nameRoom)
	n := C.uint64_t(len(buf))
	code := codeOf(C.weft_name_of(fid, pointer(buf), &n))
	return named(buf, n, code)
}

func named(buf []byte, n C.uint64_t, code Code) ([]byte, Code) {
	if code != 0 || int(n) > len(buf) {
		return nil, code
	}
	return buf[:n], 0
}

func setName(fid *C.struct_fid, address []byte) Code {
	return codeOf(C.weft_set_name(fid, pointer(address), C.uint64_t(len(address))))
}
