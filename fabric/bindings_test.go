package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// An endpoint with a queue for each direction, and with counters beside them.
func TestSeparateQueues(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm", "net"} {
		t.Run(provider, func(t *testing.T) {
			info := datagramsFor(t, provider, fabric.Messages|fabric.TaggedMessages)
			c := openCorner(t, info)
			send, receive := c.queue(t), c.queue(t)
			a, va := c.endpoint(t, info, fabric.Bindings{Events: c.events, Send: send, Receive: receive})
			b, _ := c.endpoint(t, info, fabric.Bindings{Events: c.events})
			toB := insert(t, va, b.e)
			toA := insert(t, va, a.e)
			got := make([]byte, 8)
			b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: got})
			a.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: toB, Tag: 1, Buf: []byte("there"), Context: 6}, b)
			require.Zero(t, receive.InFlight())
			done := b.completion(t, a)
			require.NoError(t, done.Err)
			require.Equal(t, "there", string(got[:done.Len]))
			require.EqualValues(t, 6, a.completion(t, b).Context)

			// To itself, so that both queues have something.
			op := a.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: got})
			require.Equal(t, 1, receive.InFlight())
			require.Zero(t, send.InFlight())
			if provider != "shm" {
				a.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: toA, Tag: 2, Buf: []byte("self")})
				kinds := map[fabric.OpKind]bool{}
				for len(kinds) < 2 {
					done := a.completion(t)
					require.NoError(t, done.Err)
					kinds[done.Kind] = true
				}
				require.Equal(t, map[fabric.OpKind]bool{fabric.OpTaggedSend: true, fabric.OpTaggedReceive: true}, kinds)
				op = a.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Buf: got})
			}
			require.NoError(t, a.e.Cancel(op.Token))
			require.ErrorIs(t, a.completion(t).Err, fabric.ErrCanceled)
			require.ErrorIs(t, send.Close(), fabric.ErrBusy)
			require.ErrorIs(t, receive.Close(), fabric.ErrBusy)
		})
	}
}

func TestEnableWithState(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm", "net"} {
		t.Run(provider, func(t *testing.T) {
			info := datagramsFor(t, provider, fabric.Messages|fabric.TaggedMessages)
			c, other := openCorner(t, info), openCorner(t, info)
			q, v := c.queue(t), c.vector(t, fabric.AddressVectorConfig{})
			e, err := c.domain.OpenEndpoint()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			for what, b := range map[string]fabric.Bindings{
				"nothing":                    {},
				"no vector":                  {Events: c.events, Send: q, Receive: q},
				"no events":                  {Vector: v, Send: q, Receive: q},
				"no queue":                   {Vector: v, Events: c.events},
				"queue of another domain":    {Vector: v, Events: c.events, Send: q, Receive: other.queue(t)},
				"vector of another domain":   {Vector: other.vector(t, fabric.AddressVectorConfig{}), Events: c.events, Send: q, Receive: q},
				"events of another fabric":   {Vector: v, Events: other.events, Send: q, Receive: q},
				"a counter that is missing":  {Vector: v, Events: c.events, Send: q, Receive: q, Counters: make([]fabric.CounterBinding, 1)},
				"a context that it does not": {Vector: v, Events: c.events, Send: q, Receive: q, SharedSend: &fabric.SharedSend{}},
			} {
				require.ErrorIs(t, e.EnableWith(b), fabric.ErrInvalid, what)
			}
			closed := c.vector(t, fabric.AddressVectorConfig{})
			require.NoError(t, closed.Close())
			require.True(t, fabric.IsClosed(e.EnableWith(fabric.Bindings{Vector: closed, Events: c.events, Send: q, Receive: q})))
			require.NoError(t, e.EnableWith(fabric.Bindings{Vector: v, Events: c.events, Send: q, Receive: q}))
			require.ErrorIs(t, e.Connect(make([]byte, 16), nil), fabric.ErrInvalid)
			require.ErrorIs(t, e.Accept(nil), fabric.ErrInvalid)
			require.NoError(t, e.Close())
			require.True(t, fabric.IsClosed(e.EnableWith(fabric.Bindings{Vector: v, Events: c.events, Send: q, Receive: q})))
		})
	}
}
