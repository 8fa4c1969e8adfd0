package fabric

import (
	"math"
	"math/rand/v2"
	"os"
	"unsafe"

	"github.com/weft-go/weft/cgo"
)

// ofi_rxm has a long message fetched by whoever receives it, and registers the memory on
// both sides for that. It gives the registrations back when the message is there, and at no
// other time: not if either side is closed or killed before. fi_close of the domain is EBUSY
// then, for ever. Of an endpoint whose program registers memory itself (FI_MR_LOCAL) it takes
// the program's registrations, and makes none. So endpoints say that, and weft registers what
// is sent for as long as it is in flight. A receive needs no rights for the peer, and over tcp
// no registration in truth: all of them have one that covers all memory.

// fetching is an endpoint's part in it.
type fetching struct {
	own    bool       // libfabric was told that weft registers
	on     bool       // the endpoint is enabled
	longer uint64     // what is longer may be fetched
	all    cgo.Region // of receives
	into   uintptr    // its descriptor
}

// fetched are the registrations of an operation in flight.
type fetched struct {
	count   int
	regions [mostFetched]cgo.Region
}

// mostFetched is how many buffers a message has at most there (RXM_IOV_LIMIT).
const mostFetched = 4

// fetches says of endpoints that weft registers for them. Collectives of libfabric's send and
// receive by an endpoint themselves, and register nothing, and a program that needs registrations
// makes them.
func fetches(i *Info) bool {
	return i.Provider() == "tcp;ofi_rxm" && i.Endpoint() == ReliableDatagram && i.Capabilities()&Collectives == 0 &&
		i.MemoryMode()&LocalRegistration == 0 && i.a.TxVectors <= mostFetched
}

// eagerLimit is what ofi_rxm copies for its messages: the size of its buffers, if nobody has
// said otherwise.
func eagerLimit(i *Info) uint64 {
	if _, set := os.LookupEnv(rxmBufferSize); set || os.Getenv("FI_OFI_RXM_EAGER_LIMIT") != "" {
		return i.InjectSize()
	}
	return usualBuffers
}

// begin is for when an endpoint is enabled.
func (f *fetching) begin(e *Endpoint) error {
	if !f.own {
		return nil
	}
	// Reading is what the provider does with it; that gives nobody a right.
	code := e.domain.registerAt(&f.all, 0, math.MaxUint64, cgo.AccessRead)
	if code != 0 {
		return fail("fi_mr_reg for messages that are fetched", e.provider, int(code))
	}
	f.on, f.into, f.longer = true, f.all.Descriptor(), eagerLimit(e.Info())
	return nil
}

// end is for when the endpoint is closed in libfabric.
func (f *fetching) end() {
	if f.on {
		f.all.Close()
		f.on = false
	}
}

// describe gives an operation the descriptors that it needs, and says whether it has them. A
// message that is copied needs none; it has one all the same, for libfabric would follow a
// null if it had a peer fetch it nevertheless, and so refuses the peer.
func (f *fetching) describe(e *Endpoint, op *Op, c *cgo.Op, x *cgo.Extra, s *slot) bool {
	kind := &kinds[op.Kind]
	if kind.remote {
		return true
	}
	one := [1]cgo.Vector{{Base: c.Buf, Len: c.Len}}
	buffers, descriptors := one[:], unsafe.Slice(&c.Descriptor, 1)
	if c.Extra != nil && x.Vectors > 0 {
		buffers, descriptors = x.Vector[:x.Vectors], x.Descriptor[:x.Vectors]
	}
	length := uint64(0)
	for _, b := range buffers {
		length += b.Len
	}
	ofDevice := e.domain.ofDevices.Load()
	for i := range descriptors {
		switch d := &descriptors[i]; {
		case ofDevice && *d != 0:
			// The program's own: it says of which device the memory is.
		case kind.receive || length <= f.longer:
			*d = f.into
		case !s.fetched.add(e.domain, buffers[i], d, cgo.AccessSend):
			return false
		}
	}
	return true
}

// add registers memory for an operation.
func (f *fetched) add(d *Domain, memory cgo.Vector, descriptor *uintptr, access uint64) bool {
	r := &f.regions[f.count]
	if d.registerAt(r, memory.Base, memory.Len, access) != 0 {
		return false
	}
	*descriptor = r.Descriptor()
	f.count++
	return true
}

// forget is for when the operation is not in flight any more.
func (f *fetched) forget() {
	for f.count > 0 {
		f.count--
		f.regions[f.count].Close()
	}
}

// registerAt registers memory for weft's own use. The key is one that a peer cannot guess that
// has not been told, and the program does not choose.
func (d *Domain) registerAt(r *cgo.Region, base uintptr, length, access uint64) (code cgo.Code) {
	unused := 64 - 8*min(max(d.info.KeySize(), 1), 8)
	for range registerAttempts {
		if code = r.Reregister(d.raw, base, length, access, rand.Uint64()>>unused); code != cgo.NoKey {
			break
		}
	}
	return code
}

// mayBeFetching says whether a receive may have a message that it is fetching. Collectives have
// receives of their own.
func (e *Endpoint) mayBeFetching() bool {
	if e.Info().Capabilities()&Collectives != 0 {
		return true
	}
	if e.receive == nil {
		return false
	}
	for i := range e.receive.table {
		if s := &e.receive.table[i]; s.busy && s.endpoint == e && kinds[s.kind].receive {
			return true
		}
	}
	return false
}
