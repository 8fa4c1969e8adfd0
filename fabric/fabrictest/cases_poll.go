package fabrictest

import (
	"context"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

var pollCases = []named{
	{"wait descriptor", waitDescriptor},
	{"blocking read", blockingRead},
}

// listener opens two stations in domains of their own, for each is used by
// another goroutine, where the second one can wait.
func listener(t *trial) (a, b *station) {
	t.Helper()
	h := t.hints(fabric.ReliableDatagram, fabric.TaggedMessages)
	s, other := openSite(t, h), openSite(t, h)
	a, b = s.open(t, s.info, fabric.Bindings{}), other.open(t, other.info, fabric.Bindings{})
	acquaint(t, a, b)
	a.others, b.others = nil, nil
	if b.q.WaitDescriptor() < 0 {
		_, err := b.TurnWait(nil, nil, 0)
		anError(t, err, "TurnWait without a wait descriptor")
		t.need("a wait descriptor", err)
	}
	return a, b
}

// hearsEach has a send one message after the other, when b waits for it by its
// own means.
func hearsEach(t *trial, a, b *station, wait func()) {
	t.Helper()
	const count = 100
	next, ended := make(chan fabric.Op), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { ended <- a.sendOnDemand(ctx, next) }()
	for i := range count {
		got := make([]byte, 32)
		b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(i), Buf: got, Context: uint64(i)})
		select {
		case next <- fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: uint64(i), Buf: fmt.Appendf(nil, "message %d", i)}:
		case err := <-ended:
			t.Fatalf("the sender ended: %v", err)
		}
		t.until("completion", func(int) bool {
			wait()
			return len(b.got) > 0
		})
		c := b.done(t)
		equal(t, uint64(i), c.Context)
		equal(t, fmt.Sprintf("message %d", i), string(got[:c.Len]))
	}
	stop()
	noError(t, <-ended)
	idle(t, b)
}

// sendOnDemand posts what it is given, and drives the sender until the context
// ends.
func (s *station) sendOnDemand(ctx context.Context, next <-chan fabric.Op) error {
	var posts []fabric.Op
	var buf [8]fabric.Completion
	for {
		select {
		case <-ctx.Done():
			return nil
		case op := <-next:
			posts = append(posts, op)
		default:
		}
		if _, err := s.Turn(posts, buf[:], 0); err != nil {
			return err
		}
		if len(posts) > 0 && posts[0].Result != fabric.Refused {
			if err := posts[0].Err; err != nil {
				return err
			}
			posts = posts[1:]
		}
	}
}

// The wait descriptor becomes readable for each message, when TryWait has said
// that it is safe to wait.
func waitDescriptor(t *trial) {
	a, b := listener(t)
	hearsEach(t, a, b, func() {
		safe, err := b.q.TryWait()
		noError(t, err)
		if safe {
			readable(t, b.q.WaitDescriptor())
		}
		b.turn(t, nil)
	})
}

// Blocking inside the provider ends with what arrives, and with the time
// allowed.
func blockingRead(t *trial) {
	a, b := listener(t)
	n, err := b.TurnWait(nil, make([]fabric.Completion, 1), 1)
	noError(t, err)
	zero(t, n)
	hearsEach(t, a, b, func() {
		var buf [4]fabric.Completion
		n, err := b.TurnWait(nil, buf[:], 1000)
		noError(t, err)
		b.got = append(b.got, buf[:n]...)
	})
}
