package fabric

import (
	"unsafe"

	"github.com/weft-go/weft/cgo"
)

// stage copies an operation to where C reads it, and says whether there was a
// slot for it. What cannot be right is left for settle to fail.
func (e *Endpoint) stage(op *Op, c *cgo.Op, x *cgo.Extra) bool {
	c.Kind, c.Slot, c.Token, c.Extra = 0, 0, 0, nil
	// The usual case first: a plain message needs no look at the rest.
	plain := op.plain()
	if (!plain || op.Kind == 0 || e.sendFlags&DeliveryComplete != 0) && (op.wrong() != "" || e.emptyTooMuch(op) != "" || e.placeless(op) ||
		e.tooManyRemotes(op)) {
		return true
	}
	if e.undirected && op.Kind == OpReceive && op.Peer != AddressAny {
		return true
	}
	if e.unmixed && e.mixes(op) {
		return true
	}
	if e.registered && op.unregistered() {
		return true
	}
	if (!plain || kinds[op.Kind].inject) && (e.misflagged(op) || e.incapable(op) != "" || e.tooMuch(op)) {
		return true
	}
	spills := e.spilling(op)
	if spills && e.tooManyBuffers(op) != "" {
		return true
	}
	kind, connected := &kinds[op.Kind], e.connected
	if e.connection.restricted.Load() {
		if errno, _ := e.connection.refuses(e, kind.receive); errno != 0 {
			return kind.receive || !e.connection.comes()
		}
		if of := e.connection.of; of != nil {
			connected = of.connected
			if !e.reaches(op) {
				return true
			}
		}
	}
	// The usual peers first: a call would cost as much as the rest.
	usual := (e.vector == nil || e.vector.bits.has(op.Peer) || kind.receive && op.Peer == AddressAny) && op.Flags&ToMulticast == 0
	if !usual && !e.reaches(op) {
		return true
	}
	if kind.atomic {
		if errno, _ := e.lacking(op); errno != 0 {
			return true
		}
	}
	if e.neighbour.removed.Load() && !kind.receive {
		onThisHost.sends(e, op.Peer)
	}
	c.Peer, c.Tag, c.Ignore = uint64(op.Peer), op.Tag, op.Ignore
	switch {
	case kind.receive && (connected || e.takesAny):
		c.Peer = uint64(AddressAny)
	case connected:
		// Order is kept by peer, and there is one.
		c.Peer = 0
	}
	c.Buf, c.Len = address(op.Buf), uint64(len(op.Buf))
	state := e.domain.descriptors.translate(&c.Descriptor, op.ownDescriptor())
	drained := false
	if !plain || spills {
		state = max(state, e.domain.extend(op, c, x))
		if e.singly {
			x.Flags &^= uint64(MultiReceive)
		}
		if drained = e.discards(op); drained {
			x.Flags = x.Flags&^uint64(Discard) | uint64(Claim)
		}
		if x.Remotes > 0 && op.Flags&^Immediate == 0 {
			// Only the form with a message takes them, and it takes no defaults.
			x.Flags |= uint64(e.sendFlags)
		}
	}
	if state != descriptorOpen {
		return state == descriptorUnknown
	}
	if drained && op.Flags&Peek == 0 {
		e.addSpill(c, x)
	}
	if e.confirmsEarly && !kind.receive {
		e.withhold(op, c, x)
	}
	if e.sendsLongWrites && op.Kind == OpWrite {
		e.withholdLong(c, x)
	}
	room := noLimit
	if spills {
		room = e.addSpill(c, x)
	}
	q := e.queue(op.Kind)
	if q == nil {
		return true
	}
	var index uint32
	if !kind.inject {
		if op.Flags&(Claim|Peek) == Claim {
			var ok bool
			if index, ok = q.claim(e, op); !ok {
				return true
			}
			q.table[index].room, q.table[index].peer = room, c.Peer
			c.Slot, c.Token = q.slots.Address(int(index)), uint64(op.Claimed)
		} else {
			if len(q.free) == 0 {
				return false
			}
			var token Token
			index, token = q.take(e, op)
			q.table[index].room, q.table[index].peer = room, c.Peer
			c.Slot, c.Token = q.slots.Address(int(index)), uint64(token)
		}
		if drained {
			s := &q.table[index]
			s.drained, s.tag, s.ignore = true, op.Tag, op.Ignore
		}
		if e.forgetsReads && op.Kind == OpRead {
			e.describeRead(c, x, &q.table[index])
		}
		if e.fetching.on && !e.fetching.describe(e, op, c, x, &q.table[index]) {
			return true
		}
	}
	c.Kind = kind.code
	return true
}

// extend fills in what an operation has beyond a buffer, a peer and a tag, and says
// how its descriptors stand. Empty pieces are left out, but for one if there is nothing else: ofi_rxm has
// a message with such a last one fetched for ever.
func (d *Domain) extend(op *Op, c *cgo.Op, x *cgo.Extra) (state descriptorState) {
	c.Extra = x
	x.Flags, x.Data = uint64(op.Flags), op.Immediate
	x.RemoteAddress, x.RemoteKey = op.Remote.Address, op.Remote.Key
	x.Remotes = 0
	if kinds[op.Kind].remote {
		for _, r := range op.Remotes {
			x.Remote[x.Remotes] = cgo.RemoteVector{Address: r.Address, Len: r.Len, Key: r.Key}
			if r.Len > 0 {
				x.Remotes++
			}
		}
		x.Remotes = max(x.Remotes, uint64(min(len(op.Remotes), 1)))
	}
	x.Vectors = 0
	for i, b := range op.Vector {
		n := x.Vectors
		x.Vector[n] = cgo.Vector{Base: address(b), Len: uint64(len(b))}
		x.Descriptor[n] = 0
		if i < len(op.Descriptors) {
			state = max(state, d.descriptors.translate(&x.Descriptor[n], op.Descriptors[i]))
		}
		if len(b) > 0 {
			x.Vectors++
		}
	}
	x.Vectors = max(x.Vectors, uint64(min(len(op.Vector), 1)))
	if a := op.Atomic; a != nil && kinds[op.Kind].atomic {
		c.Len = uint64(a.values(op))
		for i := range x.Vectors {
			x.Vector[i].Len /= uint64(a.Type.Size())
		}
		for i := range x.Remotes {
			x.Remote[i].Len /= uint64(a.Type.Size())
		}
		x.Datatype, x.Atomic = a.Type.native(), a.Operation.native()
		x.Compare, x.Result = address(a.Compare), address(a.Result)
		state = max(state, d.descriptors.translate(&x.CompareDescriptor, a.CompareDescriptor),
			d.descriptors.translate(&x.ResultDescriptor, a.ResultDescriptor))
		if a.Operation == AtomicRead && c.Buf == 0 && x.Vectors == 0 {
			// It has nothing to send, but the efa provider (1.17) copies it
			// all the same.
			c.Buf = x.Result
		}
	}
	return state
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// unstage takes the slots of operations back that libfabric has not been offered.
func (e *Endpoint) unstage(posts []Op) {
	for i := range posts {
		c := &e.turn.Ops[i]
		if c.Slot == 0 {
			continue
		}
		q, index := e.queue(posts[i].Kind), uint32(c.Token)
		if posts[i].Flags&(Claim|Peek) == Claim {
			q.unclaim(index)
		} else {
			q.give(index)
		}
	}
}

// settle tells an operation what became of it, and takes its slot back unless
// libfabric has it.
func (e *Endpoint) settle(op *Op, c *cgo.Op) {
	op.Err = nil
	if c.Result >= 0 {
		op.Result, op.Token = Posted, Token(c.Token)
		if c.Result > 0 {
			e.lose(uint32(c.Token), int(c.Result))
		}
		if c.Slot != 0 && e.send != e.receive && kinds[op.Kind].receive {
			op.Token |= receiveToken
		}
		return
	}
	if c.Slot != 0 {
		q := e.queue(op.Kind)
		if op.Flags&(Claim|Peek) == Claim && -c.Result == int32(cgo.Again) {
			q.unclaim(uint32(c.Token))
		} else {
			q.give(uint32(c.Token))
		}
	}
	if -c.Result == int32(cgo.Again) {
		op.Result = Refused
		return
	}
	op.Result = Failed
	failure := &Error{Op: op.Kind.String(), Provider: e.provider, Errno: Errno(-c.Result)}
	if c.Kind == 0 {
		failure.Errno, failure.Detail = e.wrong(op)
	} else {
		failure.gone = saysGone(e.provider, failure.Errno)
	}
	op.Err = failure
}
