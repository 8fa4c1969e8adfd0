package fabric

import "github.com/weft-go/weft/cgo"

// Libfabric 1.17 has the peer read what is written to it, if that is long and registered, where
// both devices can read. Before it has heard from the peer, it takes that for granted, also if its
// own device cannot, and the peer's process ends where the device has no function for it. So
// memory that goes out from such a device has no descriptor, and is sent.

// longWrite is how long a write is that peers are to read (efa_min_read_write_size).
const longWrite = 64 << 10

// withholdLong keeps the descriptor of a long write from the provider. Memory of devices must have
// one.
func (e *Endpoint) withholdLong(c *cgo.Op, x *cgo.Extra) {
	if e.domain.ofDevices.Load() {
		return
	}
	if c.Extra == nil || x.Vectors == 0 {
		if c.Len >= longWrite {
			c.Descriptor = 0
		}
		return
	}
	length := uint64(0)
	for _, b := range x.Vector[:x.Vectors] {
		length += b.Len
	}
	if length >= longWrite {
		clear(x.Descriptor[:x.Vectors])
	}
}
