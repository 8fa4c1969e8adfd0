package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

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
