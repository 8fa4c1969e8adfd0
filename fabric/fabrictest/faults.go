package fabrictest

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	"github.com/weft-go/weft/fabric"
)

// Faults is what a [Network] does to its devices, within what the contract of
// [fabric.Device] allows. The zero value is a network without faults. Shares
// are from 0 (never) to 1 (always).
type Faults struct {
	// Seed makes the faults repeatable as far as the calls come in the same
	// order. 0 draws a seed, which Network.Seed tells.
	Seed uint64
	// Reorder is the share of completions, of sends and of receives, that are
	// held back for up to 8 Turns and then come in random order.
	Reorder float64
	// Refuse is the share of the posts tried that are refused.
	Refuse float64
	// RefuseEveryOther refuses the first, the third, the fifth post and so on
	// that is tried on each device.
	RefuseEveryOther bool
	// Delay is the longest time that a message stays on its way, counted in
	// Turns of the receiver. Messages of one sender to one receiver arrive in
	// the order of posting all the same.
	Delay int
	// FailSend is the share of posted sends that complete with an error and
	// whose message is lost. Injects are not concerned.
	FailSend float64
	// FailSendWith is the code of that error; 0 means EIO.
	FailSendWith fabric.Errno
	// CancelSends is the share of sends that Cancel takes back while their
	// message is on its way. The others complete as if nothing had happened.
	// Receives can always be cancelled until they have a message.
	CancelSends float64
	// DeadPeers says what a send to a peer that is gone comes to.
	DeadPeers DeadPeers
}

// DeadPeers says what a device does with sends to a peer that was closed, was
// killed or never existed. Providers differ in this.
type DeadPeers uint8

// What sends to a dead peer come to. Sends that were on their way when the
// peer went complete with ErrUnreachable in any case, and so do receives that
// name the peer.
const (
	DeadPeersComplete DeadPeers = iota // posted, and complete with ErrUnreachable; injects are Failed
	DeadPeersFail                      // Failed with ErrUnreachable
	DeadPeersRefuse                    // Refused for ever, as on sockets
)

// Stats counts what happened on a [Network].
type Stats struct {
	Refused    uint64 // operations that got Refused, for whatever reason
	Reordered  uint64 // completions held back by Faults.Reorder
	Delayed    uint64 // messages that had to stay on their way
	Truncated  uint64 // messages longer than the buffer that received them
	Unexpected uint64 // messages that came before their receive
	Dropped    uint64 // messages that never arrived: a fault, a cancelled send, a device that went

	OpenDevices       int // devices that Close was not called on
	OpenRegistrations int // registrations that Close was not called on
	InFlight          int // operations whose completion was not yet returned
}

// Seed returns the seed of the network's faults. A failing test prints it.
func (n *Network) Seed() uint64 { return n.faults.Seed }

// Stats returns what happened so far. Any goroutine may call it.
func (n *Network) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.stats
	for _, d := range n.devices {
		s.InFlight += d.inFlight
	}
	return s
}

// Kill is the sudden death of d's process. Everything on its way to or from d
// is lost: sends to it and receives that name it complete with ErrUnreachable
// at the survivors. What had arrived from d before stays to be received. Each
// method of d that can fail does so from here on, but for Close.
func (n *Network) Kill(d *Device) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d.closed || d.killed {
		return
	}
	d.killed = true
	n.depart(d)
	d.signal()
}

// RaiseError gives d an error that belongs to no operation, for Errors to take.
// It ends a Wait under way, but does not keep the next one from blocking.
func (n *Network) RaiseError(d *Device, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d.errors = append(d.errors, err)
	d.signal()
}

// Partition keeps the messages between a and b, both ways, on their way until
// Heal. Nothing is lost, and no operation fails.
func (n *Network) Partition(a, b *Device) { n.part(a, b, true) }

// Heal ends a Partition.
func (n *Network) Heal(a, b *Device) { n.part(a, b, false) }

func (n *Network) part(a, b *Device, parted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a.gone || b.gone {
		return
	}
	n.link(a, b).parted = parted
	n.link(b, a).parted = parted
	a.signal()
	b.signal()
}

// HoldCompletions keeps back the completions of d from now on, for
// ReleaseCompletions, until StopHolding. Completions that d had ready before are not concerned.
func (n *Network) HoldCompletions(d *Device) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d.holding = true
}

// Held returns a copy of the completions held back, in the order in which the
// operations ended.
func (n *Network) Held(d *Device) []fabric.Completion {
	n.mu.Lock()
	defer n.mu.Unlock()
	var held []fabric.Completion
	for _, o := range d.held {
		held = append(held, o.completion)
	}
	return held
}

// AwaitHeld waits until at least count completions of d are held back, or
// until ctx is done, whose error it then returns. Somebody else has to drive
// the devices in the meantime.
func (n *Network) AwaitHeld(ctx context.Context, d *Device, count int) error {
	for {
		n.mu.Lock()
		if len(d.held) >= count {
			n.mu.Unlock()
			return nil
		}
		changed := d.heldChanged
		n.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ReleaseCompletions lets d return held completions in the given order of
// their indexes in Held. Those that order does not name stay held, and later
// ones join them. An index that is out of range or named twice is a mistake in
// the test, and panics.
func (n *Network) ReleaseCompletions(d *Device, order []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, index := range order {
		if index < 0 || index >= len(d.held) || slices.Contains(order[:i], index) {
			panic(fmt.Sprintf("fabrictest: order %v is not one of %d held completions, each named at most once", order, len(d.held)))
		}
	}
	for _, index := range order {
		d.ready.push(d.held[index])
	}
	var kept []*operation
	for index, o := range d.held {
		if !slices.Contains(order, index) {
			kept = append(kept, o)
		}
	}
	d.held = kept
	d.signal()
}

// StopHolding lets d return what is held in the order in which it came, and
// all later completions as they come.
func (n *Network) StopHolding(d *Device) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d.holding = false
	for _, o := range d.held {
		d.ready.push(o)
	}
	d.held = nil
	d.signal()
}

// chance draws whether a fault of that share happens.
func (n *Network) chance(share float64) bool {
	return share > 0 && n.random.Float64() < share
}

// refuses draws whether a post on d is refused for no other reason than a
// fault.
func (n *Network) refuses(d *Device) bool {
	if n.faults.RefuseEveryOther {
		d.tries++
		if d.tries%2 == 1 {
			return true
		}
	}
	return n.chance(n.faults.Refuse)
}

// depart takes d, which was killed or closed, out of the network.
func (n *Network) depart(d *Device) {
	d.gone = true
	n.devices = slices.DeleteFunc(n.devices, func(other *Device) bool { return other == d })
	for _, l := range d.incoming {
		for l.queue.len() > 0 {
			m := l.queue.remove(0)
			if o := m.operation; o != nil && l.from != d {
				l.from.complete(o, fabric.Completion{Err: unreachable(l.from, o.kind, syscall.ECONNRESET)})
			}
			n.drop(m)
		}
	}
	for _, other := range n.devices {
		other.forget(d)
		other.signal()
	}
	d.incoming, d.receives, d.unexpected = nil, queue[*operation]{}, queue[*message]{}
	d.slots, d.free, d.inFlight = nil, nil, 0
	d.ready, d.late, d.held = queue[*operation]{}, nil, nil
}

// forget drops what is on its way from a device that is gone, and ends the
// receives that wait for it alone.
func (d *Device) forget(gone *Device) {
	d.incoming = slices.DeleteFunc(d.incoming, func(l *link) bool {
		if l.from != gone {
			return false
		}
		for l.queue.len() > 0 {
			d.network.drop(l.queue.remove(0))
		}
		return true
	})
	for i := 0; i < d.receives.len(); {
		o := d.receives.at(i)
		if o.peer == fabric.AddressAny || d.peers[o.peer].device != gone {
			i++
			continue
		}
		d.receives.remove(i)
		d.complete(o, fabric.Completion{Err: unreachable(d, o.kind, syscall.ECONNRESET)})
	}
}
