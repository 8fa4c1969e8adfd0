package fabric_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// post posts one operation, turning the others too until there is room.
func (p *party) post(t *testing.T, op fabric.Op, others ...*party) fabric.Op {
	t.Helper()
	posts := []fabric.Op{op}
	for deadline := time.Now().Add(30 * time.Second); ; {
		p.turn(t, posts)
		if posts[0].Result != fabric.Refused {
			return posts[0]
		}
		for _, o := range others {
			o.turn(t, nil)
		}
		require.True(t, time.Now().Before(deadline), "refused for ever")
	}
}

// must posts an operation that has to be taken.
func (p *party) must(t *testing.T, op fabric.Op, others ...*party) fabric.Op {
	t.Helper()
	op = p.post(t, op, others...)
	require.NoError(t, op.Err)
	return op
}

// completion waits for one, turning the others too.
func (p *party) completion(t *testing.T, others ...*party) fabric.Completion {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); len(p.got) == 0; {
		p.turnWait(t, nil, 1)
		for _, o := range others {
			o.turn(t, nil)
		}
		require.True(t, time.Now().Before(deadline), "no completion")
	}
	c := p.got[0]
	p.got = p.got[1:]
	return c
}

func datagramsFor(t *testing.T, provider string, caps fabric.Capabilities) *fabric.Info {
	t.Helper()
	hints := fabric.Hints{
		Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: caps, MemoryMode: everyMemoryMode,
	}
	if provider != "shm" {
		hints.Source = "127.0.0.1"
	}
	infos, err := fabric.Discover(hints)
	testenv.Need(t, provider+" with "+caps.String(), err)
	return infos[0]
}

func TestScalableEndpoint(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm", "net"} {
		t.Run(provider, func(t *testing.T) {
			info := datagramsFor(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.NamedReceiveContexts)
			const contexts, bits = 4, 2
			if most := info.Limits(); most.EndpointSendContexts < contexts || most.EndpointReceiveContexts < contexts {
				testenv.Need(t, provider+" with scalable endpoints", fmt.Errorf("it has %d contexts", most.EndpointReceiveContexts))
			}
			c := openCorner(t, info)
			several, err := info.WithContexts(contexts, contexts)
			require.NoError(t, err)
			require.EqualValues(t, contexts, several.SendContexts())
			v := c.vector(t, fabric.AddressVectorConfig{ReceiveBits: bits})
			s, err := c.domain.OpenScalableEndpoint(several)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			_, err = s.OpenSend(0)
			require.ErrorIs(t, err, fabric.ErrInvalid, "before Enable")
			_, err = s.Name()
			require.ErrorIs(t, err, fabric.ErrInvalid, "before Enable")
			require.ErrorIs(t, s.Enable(nil, nil), fabric.ErrInvalid)
			require.NoError(t, s.Enable(v, c.events))
			require.ErrorIs(t, s.Enable(v, c.events), fabric.ErrInvalid)

			var sends, receives [contexts]*party
			ready := func(x *fabric.Context, err error) *party {
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, x.Close()) })
				_, err = x.Turn(nil, nil, 0)
				require.ErrorIs(t, err, fabric.ErrInvalid, "before Enable")
				require.ErrorIs(t, x.Enable(nil), fabric.ErrInvalid)
				q := c.queue(t)
				// A queue is closed after the context.
				t.Cleanup(func() { require.NoError(t, x.Close()) })
				require.NoError(t, x.Enable(q))
				require.ErrorIs(t, x.Enable(q), fabric.ErrInvalid)
				return &party{turner: x, q: q}
			}
			for i := range contexts {
				sends[i] = ready(s.OpenSend(i))
				receives[i] = ready(s.OpenReceive(i))
			}
			for _, index := range []int{-1, contexts, 0} {
				_, err = s.OpenSend(index)
				require.ErrorIs(t, err, fabric.ErrInvalid)
			}
			require.ErrorIs(t, s.Close(), fabric.ErrBusy)
			require.ErrorIs(t, sends[0].post(t, fabric.Op{Kind: fabric.OpReceive, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)
			require.ErrorIs(t, receives[0].post(t, fabric.Op{Kind: fabric.OpSend, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)
			require.ErrorIs(t, receives[0].post(t, fabric.Op{Kind: fabric.OpTaggedInject, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)

			// It talks to itself: each send context to another receive context.
			self := insert(t, v, s)
			for i := range contexts {
				to := (i + 1) % contexts
				got := make([]byte, 32)
				receives[to].must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: uint64(to)})
				sends[i].must(t, fabric.Op{Kind: fabric.OpSend, Peer: self.Context(to, bits), Buf: fmt.Appendf(nil, "from %d", i)})
				done := receives[to].completion(t, sends[i])
				require.NoError(t, done.Err)
				require.EqualValues(t, to, done.Context)
				require.Equal(t, fmt.Sprintf("from %d", i), string(got[:done.Len]))
				require.NoError(t, sends[i].completion(t).Err)
			}
			// A receive that is cancelled, and one that is in flight at the end.
			op := receives[0].must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
			require.NoError(t, receives[0].turner.(*fabric.Context).Cancel(op.Token))
			require.ErrorIs(t, receives[0].completion(t).Err, fabric.ErrCanceled)
			receives[1].must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
		})
	}
}

func TestContextAddress(t *testing.T) {
	require.Equal(t, fabric.Address(3)<<62|5, fabric.Address(5).Context(3, 2))
	require.Equal(t, fabric.Address(5), fabric.Address(5).Context(0, 2))
	for _, wrong := range []fabric.Address{
		fabric.Address(5).Context(4, 2), fabric.Address(5).Context(-1, 2), fabric.Address(5).Context(0, 0),
		fabric.Address(5).Context(0, 64), fabric.AddressAny.Context(1, 2),
	} {
		require.Equal(t, fabric.AddressAny, wrong)
	}
}

func TestAlias(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm", "net"} {
		t.Run(provider, func(t *testing.T) {
			info := datagramsFor(t, provider, fabric.Messages|fabric.TaggedMessages)
			c := openCorner(t, info)
			a, va := c.endpoint(t, info, fabric.Bindings{Events: c.events})
			b, _ := c.endpoint(t, info, fabric.Bindings{Events: c.events})
			toB := insert(t, va, b.e)

			for _, err := range []error{
				second(a.e.OpenAlias(0, 0)),
				second(a.e.OpenAlias(fabric.Sending, fabric.MultiReceive)),
				a.e.SetOperationFlags(fabric.Receiving, fabric.MultiReceive),
				a.e.SetOperationFlags(7, 0),
				second(a.e.OperationFlags(7)),
			} {
				require.ErrorIs(t, err, fabric.ErrInvalid)
			}
			alias, err := a.e.OpenAlias(fabric.Sending, fabric.DeliveryComplete)
			testenv.Need(t, provider+" with aliases", err)
			t.Cleanup(func() { require.NoError(t, alias.Close()) })
			require.ErrorIs(t, a.e.Close(), fabric.ErrBusy)
			named := &party{turner: alias, q: a.q}
			got := make([]byte, 8)
			b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: got})
			named.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: toB, Tag: 1, Buf: []byte("alias"), Context: 4})
			done := b.completion(t, named)
			require.NoError(t, done.Err)
			require.Equal(t, "alias", string(got[:done.Len]))
			done = named.completion(t, b)
			require.NoError(t, done.Err)
			require.EqualValues(t, 4, done.Context)

			// What is in flight at the end of the alias is the endpoint's.
			op := named.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: got, Context: 5})
			require.NoError(t, alias.Close())
			require.NoError(t, alias.Close())
			_, err = alias.Turn(nil, nil, 0)
			require.ErrorIs(t, err, net.ErrClosed)
			require.NoError(t, a.e.Cancel(op.Token))
			done = a.completion(t)
			require.EqualValues(t, 5, done.Context)
			require.ErrorIs(t, done.Err, fabric.ErrCanceled)
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestOperationFlags(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm", "net"} {
		t.Run(provider, func(t *testing.T) {
			info := datagramsFor(t, provider, fabric.Messages|fabric.TaggedMessages)
			c := openCorner(t, info)
			a, _ := c.endpoint(t, info, fabric.Bindings{Events: c.events})
			_, err := a.e.OperationFlags(fabric.Sending)
			testenv.Need(t, provider+" with flags to be read", err)
			require.NoError(t, a.e.SetOperationFlags(fabric.Sending, fabric.DeliveryComplete))
			flags, err := a.e.OperationFlags(fabric.Sending)
			require.NoError(t, err)
			require.NotZero(t, flags&fabric.DeliveryComplete)
			_, err = a.e.OperationFlags(fabric.Receiving)
			require.NoError(t, err)
		})
	}
}
