package fabrictest

import "github.com/weft-go/weft/fabric"

// earliestReceive takes out the earliest receive that m matches, if any.
func (d *Device) earliestReceive(m *message) *operation {
	for i := range d.receives.len() {
		if o := d.receives.at(i); d.matches(o, m) {
			return d.receives.remove(i)
		}
	}
	return nil
}

// earliestUnexpected takes out the earliest waiting message for the receive o.
func (d *Device) earliestUnexpected(o *operation) *message {
	for i := range d.unexpected.len() {
		m := d.unexpected.at(i)
		missed := d.attributes.MasksMissWaiting && m.tag != o.tag
		if !missed && d.matches(o, m) {
			return d.unexpected.remove(i)
		}
	}
	return nil
}

func (d *Device) matches(o *operation, m *message) bool {
	return (o.tag^m.tag)&^o.ignore == 0 && (o.peer == fabric.AddressAny || o.peer == d.source(m))
}

// source returns what the device calls the sender of m: the first address
// under which it was inserted.
func (d *Device) source(m *message) fabric.Address {
	if address, ok := d.known[m.from]; ok {
		return address
	}
	return fabric.AddressAny
}

// deliver ends a receive with a message.
func (d *Device) deliver(o *operation, m *message) {
	c := fabric.Completion{
		Len: copy(o.buf, m.data), Source: d.source(m), Tag: m.tag,
		HasImmediate: m.hasImmediate, Immediate: m.immediate,
	}
	if excess := len(m.data) - len(o.buf); excess > 0 {
		d.network.stats.Truncated++
		c.Tag = 0 // which is told for success only
		c.Err = d.truncated(len(o.buf), excess)
	}
	d.network.recycle(m)
	d.complete(o, c)
}
