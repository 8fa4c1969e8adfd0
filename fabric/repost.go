package fabric

import (
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// Receives that libfabric gets more than once, by weft and not by the program: what is left of a buffer
// for several messages (multireceive.go), and messages to be discarded.

// discarded says what becomes of a completion of a message that was discarded: it has no length, and it does not
// count why it could not be had.
func (s *slot) discarded(out *Completion, errno Errno) {
	s.endpoint.spill.empty()
	out.Len = 0
	if errno != Errno(syscall.ECANCELED) {
		out.Err = nil
	}
}

// drains says of endpoints that a message is discarded by being received. ofi_rxm, and efa of 2.1, drop
// one that is to be fetched and tell nobody: its send is in flight for ever.
func drains(i *Info) bool {
	return fetchesOverConnections(i.Provider()) || core(i.Provider()) == "efa"
}

// discards says whether an operation is to be such a receive, or to find the message for one.
func (e *Endpoint) discards(op *Op) bool {
	return op.Flags&Discard != 0 && e.drains && e.spill != nil
}

// found says that a completion is of a peek whose message is to be discarded, and has it received.
func (q *CompletionQueue) found(index uint32, c *cgo.Completion) bool {
	s := &q.table[index]
	if !s.drained || s.flags&Peek == 0 || c.Err != 0 {
		return false
	}
	s.flags &^= Peek
	q.unposted = append(q.unposted, s.token(index))
	return true
}

// postAgain posts what is to be posted again. The caller has put away what it read, which is before what
// may come of this. A buffer that is refused is given back without a message; a message that is to be
// discarded waits for the next time.
func (q *CompletionQueue) postAgain() {
	waiting := q.unposted[:0]
	for _, token := range q.unposted {
		index, s := q.lookup(token)
		if s == nil || s.endpoint.closed() {
			continue
		}
		e := s.endpoint
		// Whoever reads the queue alone is not in its endpoints.
		if !e.tryEnter() {
			if s.drained {
				waiting = append(waiting, token)
			} else {
				q.giveBack(index, 0)
			}
			continue
		}
		c, x := &e.turn.Ops[0], &e.turn.Extras[0]
		*c = cgo.Op{
			Kind: kinds[s.kind].code, Peer: s.peer, Tag: s.tag, Ignore: s.ignore,
			Slot: q.slots.Address(int(index)), Token: token, Extra: x,
		}
		x.Flags, x.Data, x.Vectors, x.Remotes = uint64(s.flags&^MultiReceive), 0, 0, 0
		switch errno := q.repost(s, c, x, index); {
		case errno == 0:
		case errno != Errno(syscall.EAGAIN):
			q.giveBack(index, errno)
		case s.drained:
			waiting = append(waiting, token)
		default:
			q.giveBack(index, 0)
		}
		e.leave()
	}
	q.unposted = waiting
}

// repost posts the receive of a slot, and returns why it was not.
func (q *CompletionQueue) repost(s *slot, c *cgo.Op, x *cgo.Extra, index uint32) Errno {
	e := s.endpoint
	if s.drained {
		x.Flags = x.Flags&^uint64(Discard) | uint64(Claim)
		e.addSpill(c, x)
	} else {
		c.Buf, c.Len = s.base+uintptr(s.taken), uint64(s.room)
		if e.domain.descriptors.translate(&c.Descriptor, s.descriptor) != descriptorOpen {
			return Errno(syscall.EAGAIN)
		}
		s.room = e.addSpill(c, x)
	}
	if e.fetching.on && !e.fetching.describe(e, &Op{Kind: s.kind}, c, x, s) {
		return Errno(syscall.EAGAIN)
	}
	// With nothing to read, it posts and does no more.
	e.turn.Take(1, 0, 0, 0)
	if c.Result > 0 {
		e.lose(index, int(c.Result))
	}
	return Errno(-min(c.Result, 0))
}

// giveBack ends a receive that libfabric does not have.
func (q *CompletionQueue) giveBack(index uint32, why Errno) {
	s := &q.table[index]
	out := Completion{Context: s.context, Kind: s.kind, Source: AddressAny, Released: s.flags&MultiReceive != 0}
	if why != 0 {
		out.Err = &Error{Op: s.kind.String(), Provider: q.provider, Errno: why, gone: saysGone(q.provider, why)}
	}
	q.kept = append(q.kept, out)
	q.give(index)
}
