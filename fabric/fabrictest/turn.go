package fabrictest

import (
	"runtime"
	"slices"
	"syscall"

	"github.com/weft-go/weft/fabric"
)

// Turn is as in [fabric.Device].
func (d *Device) Turn(posts []fabric.Op, completions []fabric.Completion, spins int) (int, error) {
	d.enter(&inTurn)
	defer d.leave()
	if err := d.usable("turn"); err != nil {
		for i := range posts {
			posts[i].Result, posts[i].Token, posts[i].Err = fabric.Failed, 0, err
		}
		return 0, err
	}
	d.turns++
	d.releaseLate()
	d.lanes = d.lanes[:0]
	for i := range posts {
		d.post(&posts[i])
	}
	for {
		d.arrivals()
		if reaped := d.reap(completions); reaped > 0 || spins <= 0 {
			return reaped, nil
		}
		spins--
		d.network.mu.Unlock()
		runtime.Gosched()
		d.network.mu.Lock()
		if err := d.usable("turn"); err != nil {
			return 0, err
		}
	}
}

// lane is what keeps order when one operation is refused.
type lane struct {
	peer    fabric.Address
	receive bool
}

// post tries one operation and sets its result.
func (d *Device) post(op *fabric.Op) {
	op.Result, op.Token, op.Err = fabric.Refused, 0, nil
	l := lane{op.Peer, op.Kind == fabric.OpTaggedReceive}
	if slices.Contains(d.lanes, l) {
		d.network.stats.Refused++
		return
	}
	memory, err := d.check(op)
	if err == nil && !d.network.refuses(d) {
		if op.Kind == fabric.OpTaggedReceive {
			d.postReceive(op, memory)
		} else {
			err = d.postSend(op, memory)
		}
	}
	if err != nil {
		op.Result, op.Err = fabric.Failed, err
	}
	if op.Result == fabric.Refused {
		d.network.stats.Refused++
		d.lanes = append(d.lanes, l)
	}
}

// check finds what is wrong with an operation, and the registration that its
// buffer lies in.
func (d *Device) check(op *fabric.Op) (*registration, error) {
	if op.Kind == 0 || int(op.Kind) >= len(callNames) {
		return nil, d.invalid("post", "there is no kind of operation %d", op.Kind)
	}
	call, length, receive := callNames[op.Kind], len(op.Buf), op.Kind == fabric.OpTaggedReceive
	switch {
	case receive && op.Peer == fabric.AddressAny:
	case d.peer(op.Peer) == nil:
		return nil, d.invalid(call, "there is no peer %d", op.Peer)
	}
	if !receive && uint64(length) > d.attributes.MaxMessage {
		return nil, d.invalid(call, "a message of %d bytes is longer than %d", length, d.attributes.MaxMessage)
	}
	if op.Kind == fabric.OpTaggedInject {
		if length > d.attributes.MaxInject {
			return nil, d.invalid(call, "an inject of %d bytes is longer than %d", length, d.attributes.MaxInject)
		}
		return nil, nil
	}
	if op.Descriptor == 0 && (length == 0 || !d.attributes.NeedsRegistration) {
		return nil, nil
	}
	memory := d.live[op.Descriptor]
	switch {
	case op.Descriptor == 0:
		return nil, d.invalid(call, "the buffer needs a descriptor")
	case memory == nil:
		return nil, d.invalid(call, "descriptor %d is of no open registration", op.Descriptor)
	case !memory.covers(op.Buf):
		return nil, d.invalid(call, "the buffer is not within the registration of descriptor %d", op.Descriptor)
	}
	return memory, nil
}

func (d *Device) postReceive(op *fabric.Op, memory *registration) {
	o := d.take(op, memory)
	if o == nil {
		return
	}
	if m := d.earliestUnexpected(o); m != nil {
		d.deliver(o, m)
		return
	}
	if o.peer != fabric.AddressAny {
		if from := d.peers[o.peer].device; from == nil || from.gone {
			d.complete(o, fabric.Completion{Err: unreachable(d, o.kind, syscall.EHOSTUNREACH)})
			return
		}
	}
	d.receives.push(o)
}

func (d *Device) postSend(op *fabric.Op, memory *registration) error {
	n, to, inject := d.network, d.peers[op.Peer].device, op.Kind == fabric.OpTaggedInject
	dead := to == nil || to.gone
	if dead && n.faults.DeadPeers == DeadPeersRefuse {
		return nil
	}
	if dead && (inject || n.faults.DeadPeers == DeadPeersFail) {
		return unreachable(d, op.Kind, syscall.EHOSTUNREACH)
	}
	if !dead && to.full() {
		return nil
	}
	if inject {
		if d.injects < d.attributes.MaxOperations {
			op.Result = fabric.Posted
			n.send(n.link(d, to), to, nil, op)
		}
		return nil
	}
	o := d.take(op, memory)
	switch {
	case o == nil:
	case dead:
		d.complete(o, fabric.Completion{Err: unreachable(d, o.kind, syscall.EHOSTUNREACH)})
	case n.chance(n.faults.FailSend):
		n.stats.Dropped++
		d.complete(o, fabric.Completion{Err: d.faulty(o.kind)})
	default:
		n.send(n.link(d, to), to, o, op)
	}
	return nil
}
