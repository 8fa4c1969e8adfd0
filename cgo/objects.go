//go:build linux

package cgo

/*
#include "abandonedlock.h"
#include "reach.h"
#include "sharedroom.h"
#include "shim.h"
#include "shminfo.h"
#include "strangers.h"
#include "withinhost.h"
*/
import "C"

import "unsafe"

// Wait objects of a completion queue.
const (
	WaitNone        = int(C.FI_WAIT_NONE)
	WaitUnspecified = int(C.FI_WAIT_UNSPEC)
	WaitFD          = int(C.FI_WAIT_FD)
)

// Formats of the entries of a completion queue. Each but the first begins with the
// one before it.
const (
	CQContext = int(C.FI_CQ_FORMAT_CONTEXT)
	CQMessage = int(C.FI_CQ_FORMAT_MSG)
	CQData    = int(C.FI_CQ_FORMAT_DATA)
	CQTagged  = int(C.FI_CQ_FORMAT_TAGGED)
)

// Bind flags: which direction completes on a queue.
const (
	BindTransmit uint64 = C.FI_TRANSMIT
	BindReceive  uint64 = C.FI_RECV
)

// Access of a registration.
const (
	AccessSend    uint64 = C.FI_SEND
	AccessReceive uint64 = C.FI_RECV
)

type (
	// Fabric is a fid_fabric.
	Fabric struct{ p *C.struct_fid_fabric }
	// Domain is a fid_domain.
	Domain struct{ p *C.struct_fid_domain }
	// Endpoint is a fid_ep.
	Endpoint struct{ p *C.struct_fid_ep }
	// EventQueue is a fid_eq.
	EventQueue struct{ p *C.struct_fid_eq }
	// CompletionQueue is a fid_cq.
	CompletionQueue struct{ p *C.struct_fid_cq }
	// AddressVector is a fid_av.
	AddressVector struct{ p *C.struct_fid_av }
	// Region is a fid_mr.
	Region struct{ p *C.struct_fid_mr }
)

// OpenFabric opens the fabric that the info names.
//
// Implements: int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
func OpenFabric(i Info) (f Fabric, code Code) {
	code = codeOf(C.weft_fabric(i.p, &f.p))
	return f, code
}

// OpenDomain opens the domain that the info names.
//
// Implements: int fi_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context)
func (f Fabric) OpenDomain(i Info) (d Domain, code Code) {
	code = codeOf(C.weft_domain(f.p, i.p, &d.p))
	return d, code
}

// FlagRegistrations has registrations end with an event, for BindEventQueue of a
// domain.
const FlagRegistrations uint64 = C.FI_REG_MR

// BindEventQueue makes the queue the one for events of what is in the domain.
//
// Implements: int fi_domain_bind(struct fid_domain *domain, struct fid *fid, uint64_t flags)
func (d Domain) BindEventQueue(q EventQueue, flags uint64) Code {
	return codeOf(C.weft_domain_bind(d.p, &q.p.fid, C.uint64_t(flags)))
}

// TryWait says with 0 that blocking on the queue's descriptor is safe, with
// Again that something is there to be read.
//
// Implements: int fi_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
func (f Fabric) TryWait(q CompletionQueue) Code {
	return codeOf(C.weft_trywait(f.p, &q.p.fid))
}

// OpenCompletionQueue opens a queue of entries in the format, and says how many it
// has.
//
// Implements: int fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context)
func (d Domain) OpenCompletionQueue(size, wait, format int) (q CompletionQueue, actual int, code Code) {
	n := C.uint64_t(size)
	code = codeOf(C.weft_cq_open(d.p, C.int(wait), C.int(format), &n, &q.p))
	return q, int(n), code
}

// OpenAddressVector opens a table of peers, with room for count to begin with.
//
// Implements: int fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context)
func (d Domain) OpenAddressVector(count int) (v AddressVector, code Code) {
	code = codeOf(C.weft_av_open(d.p, C.uint64_t(count), &v.p))
	return v, code
}

// OpenEndpoint makes an endpoint; it is to be bound and enabled. mode has the bits of the
// memory mode that the program holds for this endpoint beyond what the info asks for, such as
// MRLocal, and receiveCaps those of the capabilities of its receives.
//
// Implements: int fi_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context)
func (d Domain) OpenEndpoint(i Info, mode int32, receiveCaps uint64) (e Endpoint, code Code) {
	code = codeOf(C.weft_endpoint(d.p, i.p, C.uint64_t(mode), C.uint64_t(receiveCaps), &e.p))
	return e, code
}

// Register makes memory known to the domain. The memory must stay in place
// until Close of the region.
//
// Implements: int fi_mr_reg(struct fid_domain *domain, const void *buf, size_t len, uint64_t acs, uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
func (d Domain) Register(buf unsafe.Pointer, length int, access, key uint64) (r Region, code Code) {
	code = codeOf(C.weft_mr_reg(d.p, buf, C.uint64_t(length), C.uint64_t(access), C.uint64_t(key), &r.p))
	return r, code
}

// Reregister makes r another registration, as Register does, without allocation; r itself is
// not closed.
func (r *Region) Reregister(d Domain, base uintptr, length, access, key uint64) Code {
	return codeOf(C.weft_mr_reg_at(d.p, C.uintptr_t(base), C.uint64_t(length), C.uint64_t(access), C.uint64_t(key), &r.p))
}

// Descriptor is what operations carry for memory within the region.
//
// Implements: void *fi_mr_desc(struct fid_mr *mr)
func (r Region) Descriptor() uintptr { return uintptr(C.weft_mr_desc(r.p)) }

// Key is what a peer needs for remote access.
//
// Implements: uint64_t fi_mr_key(struct fid_mr *mr)
func (r Region) Key() uint64 { return uint64(C.weft_mr_key(r.p)) }

// Close closes each kind of object.
//
// Implements: int fi_close(struct fid *fid)
func (f Fabric) Close() Code { return codeOf(C.weft_close(&f.p.fid)) }

// Close closes the domain (fi_close).
func (d Domain) Close() Code { return codeOf(C.weft_close(&d.p.fid)) }

// Close closes the endpoint (fi_close).
func (e Endpoint) Close() Code { return codeOf(C.weft_reach_close(&e.p.fid, C.WEFT_CLOSE)) }

// BreakAbandonedLocks has libfabric, of version 1, take the locks of shm that a process has left
// behind that was killed, where it would wait for ever. It may be called any number of times.
// NoSystem says that libfabric, as it was built, takes locks in another way.
func BreakAbandonedLocks() Code {
	if C.weft_break_locks() != 0 {
		return NoSystem
	}
	return 0
}

// NameStrangers has a queue of shm of libfabric 1.17 say Stranger of what comes from a peer that is
// in no vector. It is called before anything is bound to the queue. NoSystem says that the queue is
// made in another way.
func (q CompletionQueue) NameStrangers() Code { return codeOf(C.weft_name_strangers(q.p)) }

// RefuseStrangers has receives for one peer of an endpoint of shm of libfabric 1.17 not get what
// comes from one that is in no vector. It is called once the endpoint is enabled.
// NoSystem says that the endpoint is made in another way.
func (e Endpoint) RefuseStrangers() Code { return codeOf(C.weft_refuse_strangers(e.p)) }

// Stranger is the source of what comes from a peer that is in no vector, where the queue has one
// for that of its own.
const Stranger = uint64(C.WEFT_STRANGER)

// KeepsShmInfo says whether what efa of libfabric 1.17 knows of shm is something else while GetInfo
// runs: nothing that efa does may be under way meanwhile, but for registering memory and what
// address vectors do.
func KeepsShmInfo() bool { return C.weft_keeps_shm_info() != 0 }

// WatchWithinHost has what a reliable endpoint of efa of libfabric 1.17 has under way
// within its host end if it fails there, and when it is closed. Without it, neither it nor
// CloseInner does. It is called before anything else is done with the endpoint. NoSystem says that
// there is no endpoint of shm inside that is known, ENOMEM that there is no memory.
func (e Endpoint) WatchWithinHost() Code { return codeOf(C.weft_within_host(e.p)) }

// CloseInner is Close for a reliable endpoint of efa of libfabric 1, which has another one inside and
// looks into that after it was freed. apart says that endpoints of the process that it has to do
// with within the host may be closed: nothing is done there any more.
func (e Endpoint) CloseInner(apart bool) Code {
	how := C.enum_weft_how(C.WEFT_CLOSE_INNER)
	if apart {
		how = C.WEFT_CLOSE_APART
	}
	return codeOf(C.weft_reach_close(&e.p.fid, how))
}

// Close closes the completion queue (fi_close).
func (q CompletionQueue) Close() Code { return codeOf(C.weft_reach_close(&q.p.fid, C.WEFT_CLOSE)) }

// Close closes the address vector (fi_close).
func (v AddressVector) Close() Code { return codeOf(C.weft_close(&v.p.fid)) }

// Close ends the registration (fi_close).
func (r Region) Close() Code { return codeOf(C.weft_close(&r.p.fid)) }

// BindEventQueue binds an event queue to the endpoint.
//
// Implements: int fi_ep_bind(struct fid_ep *ep, struct fid *bfid, uint64_t flags)
func (e Endpoint) BindEventQueue(q EventQueue) Code {
	return codeOf(C.weft_ep_bind(e.p, &q.p.fid, 0))
}

// BindCompletionQueue binds a queue for the directions in flags (fi_ep_bind).
func (e Endpoint) BindCompletionQueue(q CompletionQueue, flags uint64) Code {
	return codeOf(C.weft_ep_bind(e.p, &q.p.fid, C.uint64_t(flags)))
}

// BindAddressVector binds an address vector to the endpoint (fi_ep_bind).
func (e Endpoint) BindAddressVector(v AddressVector) Code {
	return codeOf(C.weft_ep_bind(e.p, &v.p.fid, 0))
}

// Enable makes the endpoint ready for operations.
//
// Implements: int fi_enable(struct fid_ep *ep)
func (e Endpoint) Enable() Code { return codeOf(C.weft_enable(e.p)) }

// EnableInRoom is Enable of an endpoint that has one of shm inside. What the file has that the descriptor
// is of, which keeps room in /dev/shm, is given back just before that one takes as much.
func (e Endpoint) EnableInRoom(room int) Code { return codeOf(C.weft_enable_in_room(e.p, C.int(room))) }

// Name returns the endpoint's own address.
//
// Implements: int fi_getname(fid_t fid, void *addr, size_t *addrlen)
func (e Endpoint) Name() ([]byte, Code) {
	buf := make([]byte, 256)
	n := C.uint64_t(len(buf))
	code := codeOf(C.weft_getname(e.p, unsafe.Pointer(&buf[0]), &n))
	if code != 0 || int(n) > len(buf) {
		return nil, code
	}
	return buf[:n], 0
}

// Insert adds one peer, whose address has the format and length of the domain's.
//
// Implements: int fi_av_insert(struct fid_av *av, void *addr, size_t count, fi_addr_t *fi_addr, uint64_t flags, void *context)
func (v AddressVector) Insert(address []byte) (peer uint64, code Code) {
	var n C.uint64_t
	code = codeOf(C.weft_av_insert(v.p, unsafe.Pointer(&address[0]), &n))
	return uint64(n), code
}

// WaitDescriptor returns the file descriptor to block on.
//
// Implements: int fi_control(struct fid *fid, int command, void *arg)
func (q CompletionQueue) WaitDescriptor() (int, Code) {
	var fd C.int
	code := codeOf(C.weft_wait_fd(&q.p.fid, &fd))
	return int(fd), code
}

// Signal ends a blocking read.
//
// Implements: int fi_cq_signal(struct fid_cq *cq)
func (q CompletionQueue) Signal() Code { return codeOf(C.weft_cq_signal(q.p)) }
