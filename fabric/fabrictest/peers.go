package fabrictest

import (
	"fmt"
	"syscall"

	"github.com/weft-go/weft/fabric"
)

// peer is an inserted address.
type peer struct {
	device   *Device // nil where the address is nobody's
	removed  bool
	inFlight int
}

// Insert is as in [fabric.Device]. The addresses count from 0 and are never
// used again. An address that was inserted before gets another Address, but
// Completion.Source and the matching of receives know the first one only. The
// address of a device that is gone is accepted.
func (d *Device) Insert(address []byte) (fabric.Address, error) {
	d.enter(&inInsert)
	defer d.leave()
	if err := d.usable("fi_av_insert"); err != nil {
		return fabric.AddressAny, err
	}
	device, wellFormed := d.network.named(string(address))
	if !wellFormed {
		return fabric.AddressAny, d.invalid("fi_av_insert", "%q is not an address; one looks like %q", address, d.address)
	}
	inserted := fabric.Address(len(d.peers))
	d.peers = append(d.peers, peer{device: device})
	if _, ok := d.known[device]; !ok && device != nil {
		d.known[device] = inserted
	}
	return inserted, nil
}

// Remove is as in [fabric.Device]. With operations to the peer in flight it
// gives ErrBusy, for an Address that is not inserted ErrInvalid.
func (d *Device) Remove(address fabric.Address) error {
	d.enter(&inRemove)
	defer d.leave()
	if err := d.usable("fi_av_remove"); err != nil {
		return err
	}
	p := d.peer(address)
	if p == nil {
		return d.invalid("fi_av_remove", "there is no peer %d", address)
	}
	if p.inFlight > 0 {
		return d.fail("fi_av_remove", syscall.EBUSY, fmt.Sprintf("%d operations with the peer are in flight", p.inFlight))
	}
	p.removed = true
	if p.device == nil {
		return nil
	}
	delete(d.known, p.device)
	for i, other := range d.peers {
		if other.device == p.device && !other.removed {
			d.known[p.device] = fabric.Address(i)
			break
		}
	}
	return nil
}

func (d *Device) peer(address fabric.Address) *peer {
	if address >= fabric.Address(len(d.peers)) || d.peers[address].removed {
		return nil
	}
	return &d.peers[address]
}
