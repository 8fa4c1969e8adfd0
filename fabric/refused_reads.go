package fabric

import "github.com/weft-go/weft/cgo"

// An endpoint of efa registers memory that is read into, if it gets no descriptor. If the device
// refuses the read, libfabric 1.17 forgets the registration: fi_close of the domain is EBUSY
// then, for ever. So weft registers it, for as long as the read is in flight.

// forgetsReads says of endpoints that weft registers what they read into.
func forgetsReads(i *Info) bool {
	return LibraryVersion().Major < 2 && core(i.Provider()) == "efa" && i.Endpoint() == ReliableDatagram
}

// describeRead gives a read the descriptors that it has none of, but for memory that cannot be
// registered, which is left to libfabric.
func (e *Endpoint) describeRead(c *cgo.Op, x *cgo.Extra, s *slot) {
	if e.domain.ofDevices.Load() {
		return
	}
	if c.Extra == nil || x.Vectors == 0 {
		if c.Descriptor == 0 {
			s.fetched.add(e.domain, cgo.Vector{Base: c.Buf, Len: c.Len}, &c.Descriptor, cgo.AccessRead)
		}
		return
	}
	for i, b := range x.Vector[:min(x.Vectors, mostFetched)] {
		if x.Descriptor[i] == 0 && b.Len > 0 {
			s.fetched.add(e.domain, b, &x.Descriptor[i], cgo.AccessRead)
		}
	}
}
