package fabric_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// What weft refuses has bound nothing, so that a program can mend it; libfabric would
// count a second binding, and what is bound could not be closed.
func TestEnableAgain(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := datagramsFor(t, provider, fabric.TaggedMessages)
		c := openCorner(t, info)
		other := openCorner(t, info)
		q, v := c.queue(t), c.vector(t, fabric.AddressVectorConfig{})
		own, foreign := openCounter(t, c.domain), openCounter(t, other.domain)
		e := endpointOf(t, c.domain)
		for what, b := range map[string]fabric.CounterBinding{
			"of another domain":   {Counter: foreign, Events: fabric.CountSends},
			"that counts nothing": {Counter: own},
			"of other events":     {Counter: own, Events: 1},
		} {
			b := fabric.Bindings{Vector: v, Events: c.events, Send: q, Receive: q, Counters: []fabric.CounterBinding{
				{Counter: own, Events: fabric.CountSends}, b,
			}}
			require.ErrorIs(t, e.EnableWith(b), fabric.ErrInvalid, what)
		}
		require.NoError(t, e.Enable(v, q, c.events))
	})
}

// An endpoint for which libfabric has failed does not bind a second time.
func TestEnableAfterFailure(t *testing.T) {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.ReliableDatagram, Capabilities: fabric.TaggedMessages, Source: "192.0.2.1",
	})
	testenv.Need(t, "sockets", err)
	c := openCorner(t, infos[0])
	q, v := c.queue(t), c.vector(t, fabric.AddressVectorConfig{})
	e := endpointOf(t, c.domain)
	require.Error(t, e.Enable(v, q, c.events), "no such address")
	err = e.Enable(v, q, c.events)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.ErrorContains(t, err, "can only be closed")
}

// So it is with the parts of a scalable endpoint.
func TestEnableContextAgain(t *testing.T) {
	info := datagramsFor(t, "sockets", fabric.TaggedMessages|fabric.NamedReceiveContexts)
	several, err := info.WithContexts(2, 2)
	require.NoError(t, err)
	c, other := openCorner(t, info), openCorner(t, info)
	q, v := c.queue(t), c.vector(t, fabric.AddressVectorConfig{ReceiveBits: 1})
	s, err := c.domain.OpenScalableEndpoint(several)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	closed, err := c.fabric.OpenEventQueue()
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	require.ErrorIs(t, s.Enable(v, closed), net.ErrClosed)
	require.ErrorIs(t, s.Enable(v, other.events), fabric.ErrInvalid)
	require.NoError(t, s.Enable(v, c.events))
	require.ErrorIs(t, s.Enable(v, c.events), fabric.ErrInvalid, "twice")

	send, err := s.OpenSend(1)
	require.NoError(t, err)
	defer func() { require.NoError(t, send.Close()) }()
	_, err = s.OpenSend(1)
	require.ErrorIs(t, err, fabric.ErrInvalid, "twice")
	counter := fabric.CounterBinding{Counter: openCounter(t, other.domain), Events: fabric.CountSends}
	require.ErrorIs(t, send.Enable(nil), fabric.ErrInvalid)
	require.ErrorIs(t, send.Enable(new(fabric.CompletionQueue)), fabric.ErrInvalid)
	require.ErrorIs(t, send.Enable(q, counter), fabric.ErrInvalid)
	require.ErrorIs(t, send.Enable(q, fabric.CounterBinding{}), fabric.ErrInvalid)
	require.NoError(t, send.Enable(q))
	require.ErrorIs(t, send.Enable(q), fabric.ErrInvalid, "twice")
}

// Nobody could connect a scalable endpoint of connections, and what it is bound to could
// not be closed: it is not opened.
func TestScalableEndpointOfConnections(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		several, err := x.info.WithContexts(1, 1)
		require.NoError(t, err)
		_, err = x.domain.OpenScalableEndpoint(several)
		require.ErrorIs(t, err, fabric.ErrNotSupported)
	})
}
