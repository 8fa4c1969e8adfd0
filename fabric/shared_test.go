package fabric_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// Two endpoints receive into the buffers of one context.
func TestSharedReceive(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm", "net"} {
		t.Run(provider, func(t *testing.T) {
			info := datagramsFor(t, provider, fabric.Messages|fabric.TaggedMessages)
			c := openCorner(t, info)
			sharing, err := info.WithContexts(1, fabric.SharedContext)
			require.NoError(t, err)
			require.Equal(t, fabric.SharedContext, sharing.ReceiveContexts())
			pool, own := c.queue(t), c.queue(t)
			_, err = c.domain.OpenSharedReceive(sharing, nil)
			require.ErrorIs(t, err, fabric.ErrInvalid)
			srx, err := c.domain.OpenSharedReceive(sharing, pool)
			testenv.Need(t, provider+" with shared receive contexts", err)
			t.Cleanup(func() { require.NoError(t, srx.Close()) })
			require.ErrorIs(t, srx.Enable(pool), fabric.ErrInvalid, "it is enabled already")
			require.ErrorIs(t, pool.Close(), fabric.ErrBusy)

			v := c.vector(t, fabric.AddressVectorConfig{})
			wrong, err := c.domain.OpenEndpointFor(sharing)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, wrong.Close()) })
			for _, b := range []fabric.Bindings{
				{Vector: v, Events: c.events, Send: own, Receive: own},
				{Vector: v, Events: c.events, Send: own, Receive: own, SharedReceive: srx},
			} {
				require.ErrorIs(t, wrong.EnableWith(b), fabric.ErrInvalid)
			}
			alone, err := c.domain.OpenEndpoint()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, alone.Close()) })
			require.ErrorIs(t, alone.EnableWith(fabric.Bindings{
				Vector: v, Events: c.events, Send: own, Receive: pool, SharedReceive: srx,
			}), fabric.ErrInvalid)

			var ends [2]*party
			for i := range ends {
				ends[i], _ = c.endpoint(t, sharing, fabric.Bindings{Vector: v, Events: c.events, Receive: pool, SharedReceive: srx})
			}
			require.ErrorIs(t, srx.Close(), fabric.ErrBusy)
			pooled := &party{turner: srx, q: pool}
			require.ErrorIs(t, ends[0].post(t, fabric.Op{Kind: fabric.OpReceive, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)
			require.ErrorIs(t, pooled.post(t, fabric.Op{Kind: fabric.OpSend, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)

			from, _ := c.endpoint(t, info, fabric.Bindings{Vector: v, Events: c.events})
			for i, end := range ends {
				to := insert(t, v, end.e)
				got := make([]byte, 16)
				pooled.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: 9})
				from.must(t, fabric.Op{Kind: fabric.OpSend, Peer: to, Buf: fmt.Appendf(nil, "to %d", i)}, pooled)
				done := pooled.completion(t, from)
				require.NoError(t, done.Err)
				require.EqualValues(t, 9, done.Context)
				require.Equal(t, fmt.Sprintf("to %d", i), string(got[:done.Len]))
				require.NoError(t, from.completion(t).Err)
			}
			// One is in flight when everything is closed.
			op := pooled.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
			require.ErrorIs(t, srx.Cancel(op.Token), fabric.ErrNotSupported)
		})
	}
}

// Accepted connections receive into the buffers of one context.
func TestSharedReceiveOfConnections(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		sharing, err := x.info.WithContexts(1, fabric.SharedContext)
		require.NoError(t, err)
		c := &corner{x.fabric, x.domain, x.events}
		pool := c.queue(t)
		srx, err := x.domain.OpenSharedReceive(sharing, pool)
		testenv.Need(t, x.info.Provider()+" with shared receive contexts of connections", err)
		t.Cleanup(func() { require.NoError(t, srx.Close()) })
		p, err := x.fabric.OpenPassiveEndpoint(sharing)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close()) })
		require.NoError(t, p.Listen(x.events))
		address, err := p.Name()
		require.NoError(t, err)
		var callers, answers [3]*party
		for i := range callers {
			callers[i] = x.caller(t)
			require.NoError(t, callers[i].e.Connect(address, nil))
			r := x.request(t)
			require.Equal(t, fabric.SharedContext, r.Info().ReceiveContexts())
			e, err := r.OpenEndpoint(x.domain)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			require.NoError(t, e.EnableWith(fabric.Bindings{Send: pool, Receive: pool, Events: x.events, SharedReceive: srx}))
			require.NoError(t, e.Accept(nil))
			answers[i] = newParty(e, pool)
			x.connected(t, callers[i])
			x.connected(t, answers[i])
		}
		require.ErrorIs(t, answers[0].post(t, fabric.Op{Kind: fabric.OpReceive, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)
		pooled := &party{turner: srx, q: pool}
		for i, a := range callers {
			got := make([]byte, 16)
			pooled.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: 9})
			a.must(t, fabric.Op{Kind: fabric.OpSend, Buf: fmt.Appendf(nil, "caller %d", i)}, pooled)
			done := pooled.completion(t, a)
			require.NoError(t, done.Err)
			require.EqualValues(t, 9, done.Context)
			require.Equal(t, fmt.Sprintf("caller %d", i), string(got[:done.Len]))
			require.NoError(t, a.completion(t).Err)
		}
		pooled.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
	})
}

func TestSharedSend(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm", "net"} {
		t.Run(provider, func(t *testing.T) {
			info := datagramsFor(t, provider, fabric.Messages|fabric.TaggedMessages)
			c := openCorner(t, info)
			if provider == "sockets" {
				_, err := c.domain.OpenSharedSend(info)
				require.ErrorIs(t, err, fabric.ErrNotSupported)
				defer fabric.TrustSockets()()
			}
			stx, err := c.domain.OpenSharedSend(info)
			testenv.Need(t, provider+" with shared send contexts", err)
			t.Cleanup(func() { require.NoError(t, stx.Close()) })
			sharing, err := info.WithContexts(fabric.SharedContext, 1)
			require.NoError(t, err)
			v, q := c.vector(t, fabric.AddressVectorConfig{}), c.queue(t)
			wrong, err := c.domain.OpenEndpointFor(sharing)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, wrong.Close()) })
			require.ErrorIs(t, wrong.EnableWith(fabric.Bindings{Vector: v, Events: c.events, Send: q, Receive: q}), fabric.ErrInvalid)
			for range 2 {
				c.endpoint(t, sharing, fabric.Bindings{Vector: v, Events: c.events, SharedSend: stx})
			}
			require.ErrorIs(t, stx.Close(), fabric.ErrBusy)
		})
	}
}
