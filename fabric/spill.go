package fabric

import (
	"math"
	"strconv"
	"strings"

	"github.com/weft-go/weft/cgo"
)

// Some providers go wrong where a message does not fit its receive: shm copies a
// long one for ever (libfabric 1.x), or ends the process or never completes it
// (2.1), efa within a host does as shm, and tcp and net of 1.17 deliver nothing more
// from that sender, or end the process. sockets reads what did not fit, and throws it away; if the
// sender ends meanwhile, it goes on to do so with as much of what comes from others. So receives
// there have one more buffer, behind those of the program, which has room for everything, and weft
// finds by the length what did not fit. tcp of 2.x takes a receive without a buffer for the end of the
// connection, and says so of it or nothing at all: those have that buffer only.

// spillVectors is how many buffers a receive has with such a provider, the one for what does not
// fit included.
func spillVectors(provider string) int {
	if core(provider) == "sockets" {
		return cgo.MaxVectors
	}
	return 4
}

// noLimit is the room of a receive of which the provider finds by itself that a
// message does not fit.
const noLimit = math.MaxInt

// spills says of endpoints that their receives need a buffer for what does not fit.
func spills(i *Info) bool {
	p := i.Provider()
	if core(p) == "sockets" {
		return i.a.RxVectors >= 2
	}
	if i.Endpoint() != ReliableDatagram || i.a.RxVectors < 2 || registered(i) {
		return false
	}
	// efa takes a buffer without a descriptor in either memory mode, and registers of it what a
	// message needs, if anything.
	return onlyLengthTells(p) && (core(p) == "efa" || i.MemoryMode()&LocalRegistration == 0)
}

// spillsEmpty says of endpoints that receives of theirs need it that have no other.
func spillsEmpty(i *Info) bool { return i.Provider() == "tcp" && !olderThanTwo }

// onlyLengthTells says of a provider that its endpoints may spill.
func onlyLengthTells(provider string) bool {
	return provider == "shm" || provider == "net" || core(provider) == "sockets" || core(provider) == "efa" || strings.HasSuffix(provider, ";ofi_rxm")
}

// receiveVectors is how many buffers the program can give to a receive.
func receiveVectors(i *Info) uint64 {
	if spills(i) {
		return min(i.a.RxVectors, uint64(spillVectors(i.Provider()))) - 1
	}
	return i.a.RxVectors
}

// spilling says that an operation is a receive with a buffer more. A peek has none,
// and a buffer that libfabric takes several messages into can have none: it must be long enough.
func (e *Endpoint) spilling(op *Op) bool {
	return e.spill != nil && kinds[op.Kind].receive && op.Flags&(Peek|Discard) == 0 &&
		(op.Flags&MultiReceive == 0 || e.singly) && (!e.spillsEmpty || op.length() == 0)
}

// tooManyBuffers says why a receive leaves no room for one buffer more, or nothing.
func (e *Endpoint) tooManyBuffers(op *Op) string {
	most := spillVectors(e.provider) - 1
	full := 0
	for _, b := range op.Vector {
		if len(b) > 0 {
			full++
		}
	}
	if full <= most {
		return ""
	}
	return "a receive has at most " + strconv.Itoa(most) + " buffers here, not " + strconv.Itoa(full)
}

// addSpill gives a receive the buffer for what does not fit, and returns how long
// the others are.
func (e *Endpoint) addSpill(c *cgo.Op, x *cgo.Extra) (room int) {
	if x.Vectors == 0 {
		x.Vectors = 1
		x.Vector[0], x.Descriptor[0] = cgo.Vector{Base: c.Buf, Len: c.Len}, c.Descriptor
	}
	n := 0
	for i, v := range x.Vector[:x.Vectors] {
		if v.Len > 0 {
			x.Vector[n], x.Descriptor[n] = v, x.Descriptor[i]
			room += int(v.Len)
			n++
		}
	}
	x.Vector[n] = cgo.Vector{Base: address(e.spill.memory), Len: uint64(len(e.spill.memory))}
	x.Descriptor[n] = 0
	x.Vectors = uint64(n + 1)
	return room
}

// spilled makes the completion of a receive the failure that it is: a message of
// length bytes did not fit.
func (s *slot) spilled(q *CompletionQueue, out *Completion, length int) {
	s.endpoint.spill.empty()
	*out = Completion{
		Context: s.context, Kind: s.kind, Source: AddressAny, Released: s.flags&MultiReceive != 0,
		Err: &Error{Op: s.kind.String(), Provider: q.provider, Errno: errnoTruncated, Excess: length - s.room},
	}
}
