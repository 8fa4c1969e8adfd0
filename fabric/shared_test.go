package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Shared send contexts of sockets are refused, because they do not hold with
// traffic; without any, they show what weft asks of endpoints that share one.
func TestSharedSend(t *testing.T) {
	info := datagramsFor(t, "sockets", fabric.Messages|fabric.TaggedMessages)
	c := openCorner(t, info)
	_, err := c.domain.OpenSharedSend(info)
	require.ErrorIs(t, err, fabric.ErrNotSupported)
	defer fabric.TrustSockets()()
	stx, err := c.domain.OpenSharedSend(info)
	require.NoError(t, err)
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
}
