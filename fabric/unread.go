package fabric

import (
	"errors"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// shm of libfabric 2.x, also within efa, looks at each message that nobody has received once more
// when their endpoint is closed: it writes into the memory of whoever sent it, at a
// place that is of something else there. If the sender is an endpoint of this process
// that is closed already, the memory is gone, and the process dies of SIGSEGV. So
// such messages are received before, into memory that nobody looks at.

// The receives for them belong to no slot of the queue. Each kind has a context of
// its own, the same for all, and a token.
var unreadKinds = [...]struct {
	op    OpKind
	needs Capabilities
	token uint64
}{
	{OpTaggedReceive, TaggedMessages, cgo.NoToken - 1},
	{OpReceive, Messages, cgo.NoToken - 2},
}

const (
	// unreadAtOnce is how many receives of a kind there are at a time. They stay, so
	// that what comes in with the last look is not left either.
	unreadAtOnce = 64
	// mostUnread bounds how many are received, and how many pages of them, while
	// others go on sending.
	mostUnread = 1 << 20
	pageSize   = 1 << 12
)

// receiveUnread takes whatever has come to an endpoint that is to be closed. To look
// for it moves what is under way here as well.
func (e *Endpoint) receiveUnread() {
	q := e.receive
	if olderThanTwo || !looksAtNeighbours(e.provider) || q == nil || e.spill == nil || !q.roomForUnread() {
		return
	}
	defer e.spill.empty()
	e.endDirected()
	for kind := range unreadKinds {
		e.postUnread(q, kind, unreadAtOnce)
	}
	for taken := 0; taken < mostUnread; {
		n, code := q.reader.Take(0, len(q.reader.Completions), 0, 0)
		if code != 0 || n == 0 {
			return
		}
		var again [len(unreadKinds)]int
		for i := range n {
			c := &q.reader.Completions[i]
			if kind := unreadKind(c.Token); kind >= 0 {
				again[kind]++
				taken += 1 + int(c.Len/pageSize)
			} else {
				q.keep(c, e, true)
			}
		}
		for kind, count := range again {
			e.postUnread(q, kind, count)
		}
	}
}

// unreadKind is which of the receives for unread messages a token is of, or -1.
func unreadKind(token uint64) int {
	for i, k := range unreadKinds {
		if k.token == token {
			return i
		}
	}
	return -1
}

func (e *Endpoint) postUnread(q *CompletionQueue, kind, count int) {
	k := unreadKinds[kind]
	if e.domain.info.Capabilities()&k.needs == 0 {
		return
	}
	for count > 0 {
		n := min(count, len(e.turn.Ops))
		for i := range n {
			e.turn.Ops[i] = cgo.Op{
				Kind: kinds[k.op].code, Peer: uint64(AddressAny), Ignore: ^uint64(0),
				Buf: address(e.spill.memory), Len: uint64(len(e.spill.memory)), Slot: q.unread.Address(kind), Token: k.token,
			}
		}
		// With nothing to read, it makes no progress.
		e.turn.Take(n, 0, 0, 0)
		count -= n
	}
}

// roomForUnread makes the contexts of receives for unread messages. They are there
// until the queue is closed, which may have their completions as long.
func (q *CompletionQueue) roomForUnread() bool {
	if q.unread == (cgo.Slots{}) {
		slots, ok := cgo.NewSlots(len(unreadKinds))
		if !ok {
			return false
		}
		q.unread = slots
	}
	return true
}

// keep takes a completion that was read while an endpoint is closed, or its connection ended, for
// whoever reads the queue next, unless it is of an endpoint that is closed.
func (q *CompletionQueue) keep(c *cgo.Completion, ending *Endpoint, closes bool) {
	_, s := q.lookup(c.Token)
	own := s != nil && s.endpoint == ending
	var out Completion
	if !q.finish(q.reader, c, &out) || own && closes {
		return
	}
	defer q.postAgain()
	if own && errors.Is(out.Err, ErrUnreachable) {
		// It was not the peer that ended the connection.
		out.Err = &Error{Op: out.Kind.String(), Provider: q.provider, Errno: Errno(syscall.ECANCELED), Detail: "the connection was ended amid it"}
	}
	q.kept = append(q.kept, out)
}
