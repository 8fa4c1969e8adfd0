package fabric

import "github.com/weft-go/weft/cgo"

// Endpoints of efa complete a short operation with DeliveryComplete when the peer's answer
// is there (rxr_pkt_handle_receipt_recv of libfabric 1.17). The device may not have heard then
// that its packet has arrived, and send it again: if the memory is not registered any more, the
// packet fails, and libfabric takes that for the failure of an operation that has come since.
// Of memory without a descriptor the provider sends a copy of its own.

// confirmsEarly says that short operations of an endpoint get no descriptors if they have
// DeliveryComplete. Those of efa-direct are the device's alone, which needs them.
func confirmsEarly(i *Info) bool { return core(i.Provider()) == "efa" && !registered(i) }

// mostInPacket is more than what an operation has whose data go with the request, in one packet.
// Of longer writes libfabric waits for all packets; of messages only from 64 KiB on
// (docs/PROVIDERS.md).
const mostInPacket = 9 << 10

// withhold keeps the descriptor of a short operation with DeliveryComplete from the provider.
// Where memory of devices is registered, it may be that, which the provider cannot copy.
func (e *Endpoint) withhold(op *Op, c *cgo.Op, x *cgo.Extra) {
	if e.flagsOf(op)&DeliveryComplete == 0 || c.Len > mostInPacket || op.Atomic != nil || e.domain.ofDevices.Load() {
		return
	}
	c.Descriptor = 0
	// The data of several buffers are copied in any case.
	if len(op.Vector) == 1 && len(op.Vector[0]) <= mostInPacket {
		x.Descriptor[0] = 0
	}
}
