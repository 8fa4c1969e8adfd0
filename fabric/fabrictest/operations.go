package fabrictest

import (
	"slices"
	"syscall"

	"github.com/weft-go/weft/fabric"
)

// operation is a slot for one operation in flight.
type operation struct {
	index, generation uint32
	inUse, ended      bool

	kind         fabric.OpKind
	peer         fabric.Address
	tag, ignore  uint64
	buf          []byte
	context      uint64
	registration *registration

	completion fabric.Completion
	due        uint64 // the Turn in which a late completion is returned
}

func (o *operation) token() fabric.Token {
	return fabric.Token(o.generation)<<32 | fabric.Token(o.index)
}

// callNames has the call behind each kind of operation.
var callNames = [...]string{
	fabric.OpTaggedSend:    "fi_tsend",
	fabric.OpTaggedReceive: "fi_trecv",
	fabric.OpTaggedInject:  "fi_tinject",
}

// take finds a slot for op, which is posted thereby, or returns nil.
func (d *Device) take(op *fabric.Op, memory *registration) *operation {
	var o *operation
	if last := len(d.free) - 1; last >= 0 {
		o, d.free = d.free[last], d.free[:last]
	} else if len(d.slots) < d.attributes.MaxOperations {
		o = &operation{index: uint32(len(d.slots)), generation: 1}
		d.slots = append(d.slots, o)
	} else {
		return nil
	}
	o.inUse = true
	o.kind, o.peer, o.tag, o.ignore, o.buf, o.context = op.Kind, op.Peer, op.Tag, op.Ignore, op.Buf, op.Context
	if o.registration = memory; memory != nil {
		memory.inFlight++
	}
	if o.peer != fabric.AddressAny {
		d.peers[o.peer].inFlight++
	}
	d.inFlight++
	op.Result, op.Token = fabric.Posted, o.token()
	return o
}

// complete ends an operation. Its completion is c, together with what the
// operation itself tells.
func (d *Device) complete(o *operation, c fabric.Completion) {
	c.Context, c.Kind = o.context, o.kind
	if c.Err != nil || o.kind != fabric.OpTaggedReceive {
		c.Source = fabric.AddressAny
	}
	o.ended, o.completion = true, c
	n := d.network
	switch {
	case d.holding:
		d.held = append(d.held, o)
		close(d.heldChanged)
		d.heldChanged = make(chan struct{})
	case n.chance(n.faults.Reorder):
		n.stats.Reordered++
		o.due = d.turns + 1 + n.random.Uint64N(8)
		d.late = append(d.late, o)
	default:
		d.ready.push(o)
	}
	d.signal()
}

// releaseLate makes the late completions ready that are due, in random order.
func (d *Device) releaseLate() {
	if len(d.late) == 0 {
		return
	}
	d.network.random.Shuffle(len(d.late), func(i, j int) { d.late[i], d.late[j] = d.late[j], d.late[i] })
	d.late = slices.DeleteFunc(d.late, func(o *operation) bool {
		if o.due <= d.turns {
			d.ready.push(o)
		}
		return o.due <= d.turns
	})
}

// reap fills in completions. With that the operations' slots are free, and
// their buffers are the caller's again.
func (d *Device) reap(completions []fabric.Completion) int {
	count := min(len(completions), d.ready.len())
	for i := range count {
		o := d.ready.remove(0)
		completions[i] = o.completion
		if o.registration != nil {
			o.registration.inFlight--
		}
		if o.peer != fabric.AddressAny {
			d.peers[o.peer].inFlight--
		}
		d.inFlight--
		*o = operation{index: o.index, generation: o.generation + 1}
		d.free = append(d.free, o)
	}
	return count
}

// Cancel is as in [fabric.Device]. A receive without a message is cancelled
// always, a send on its way as Faults.CancelSends says. A token that no Turn
// gave out is ErrInvalid.
func (d *Device) Cancel(token fabric.Token) error {
	d.enter(&inCancel)
	defer d.leave()
	if err := d.usable("fi_cancel"); err != nil {
		return err
	}
	index, generation := uint64(token&(1<<32-1)), uint32(token>>32)
	if index >= uint64(len(d.slots)) || generation == 0 || generation > d.slots[index].generation ||
		generation == d.slots[index].generation && !d.slots[index].inUse {
		return d.invalid("fi_cancel", "token %#x was never given out", uint64(token))
	}
	o := d.slots[index]
	if o.generation != generation || o.ended {
		return nil
	}
	if o.kind == fabric.OpTaggedReceive {
		for i := range d.receives.len() {
			if d.receives.at(i) == o {
				d.receives.remove(i)
				break
			}
		}
	} else if !d.takeBack(o) {
		return nil
	}
	d.complete(o, fabric.Completion{Err: d.fail(callNames[o.kind], syscall.ECANCELED, "")})
	return nil
}

// takeBack drops the message of a send that is on its way, if the faults want
// that.
func (d *Device) takeBack(o *operation) bool {
	n := d.network
	if !n.chance(n.faults.CancelSends) {
		return false
	}
	to := d.peers[o.peer].device
	l := n.link(d, to)
	for i := range l.queue.len() {
		if l.queue.at(i).operation == o {
			n.drop(l.queue.remove(i))
			l.stuck = false
			to.signal()
			return true
		}
	}
	return false
}
