package fabric

import (
	"fmt"
	"slices"

	"github.com/weft-go/weft/cgo"
)

// ToMulticast says that Op.Peer of a send is the Address of a MulticastGroup
// (FI_MULTICAST), which the endpoint of the send has joined. Any other peer is
// ErrNotFound, an endpoint without Multicast ErrNotSupported.
const ToMulticast OpFlags = OpFlags(cgo.FlagMulticast)

// MulticastGroup is an endpoint's membership in a multicast group (fid_mc): what
// any member sends to it comes to all. One goroutine at a time may use it,
// together with its endpoint.
type MulticastGroup struct {
	handle
	raw      cgo.Multicast
	endpoint *Endpoint
	address  Address
}

// JoinMulticast lets the endpoint join the multicast group of an address, which
// has the format of the endpoint's own Name; it does not keep the bytes. The
// group is joined when the endpoint's event queue has the JoinCompleteEvent.
// With CanSend alone the endpoint only sends to it, with CanReceive alone it
// only receives; 0 is what the endpoint can do. To receive, its Name must not be
// an address of this host's alone: bind it to 0.0.0.0.
//
// ErrNotSupported says that the provider has no multicast, or that the endpoint
// was not opened with Multicast; ErrInvalid that it is not enabled, or that the
// address is not of its format.
//
// Implements: int fi_join(...)
func (e *Endpoint) JoinMulticast(address []byte, flags Capabilities) (*MulticastGroup, error) {
	const op = "fi_join"
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	switch {
	case e.turn == nil:
		return nil, e.notEnabled(op)
	case flags&^(CanSend|CanReceive) != 0:
		return nil, e.cannotJoin(op, errnoInvalid, "the flags of a group are CanSend and CanReceive")
	case e.connection.events == nil:
		return nil, e.cannotJoin(op, errnoInvalid, "the endpoint has no event queue")
	case e.Info().Capabilities()&Multicast == 0:
		return nil, fail(op, e.provider, int(cgo.NoSystem))
	}
	name, code := e.raw.Name()
	if code != 0 {
		return nil, fail("fi_getname", e.provider, int(code))
	}
	// The provider reads as many bytes as the family of the address has.
	const family = 2
	if len(address) != len(name) || len(name) < family || string(address[:family]) != string(name[:family]) {
		return nil, e.cannotJoin(op, errnoInvalid,
			fmt.Sprintf("the address of a group has %d bytes and the family of the endpoint's own", len(name)))
	}
	g := &MulticastGroup{endpoint: e}
	code = e.connection.events.attachJoin(g, 0, func() (cgo.Multicast, cgo.Code) {
		g.raw, code = e.raw.Join(address, uint64(flags))
		return g.raw, code
	})
	if code != 0 {
		return nil, fail(op, e.provider, int(code))
	}
	g.address = Address(g.raw.Address())
	g.open("multicast group", e.provider, &e.handle)
	e.multicast = append(e.multicast, g.address)
	return g, nil
}

// Address is what messages to the group are sent to, with ToMulticast. It is
// void after Close.
//
// Implements: fi_addr_t fi_mc_addr(...)
func (g *MulticastGroup) Address() Address { return g.address }

// Close leaves the group. It comes before Close of the endpoint.
//
// Implements: int fi_close(...)
func (g *MulticastGroup) Close() error {
	return g.close(func() error {
		if err := fail("fi_close of multicast group", g.provider, int(g.raw.Close())); err != nil {
			return err
		}
		// Another group may get the address.
		if i := slices.Index(g.endpoint.multicast, g.address); i >= 0 {
			g.endpoint.multicast = slices.Delete(g.endpoint.multicast, i, i+1)
		}
		return nil
	})
}
