package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// What is refused of an endpoint, because its provider would go on without a look, is
// refused of its alias; and an alias is opened with what its endpoint was.
func TestAliasIsAsItsEndpoint(t *testing.T) {
	info := strewInfo(t, "sockets")
	f, d := partsOf(t, info)
	other, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.ReliableDatagram, Capabilities: info.Capabilities(), Source: "127.0.0.1", Domain: info.Domain(),
	})
	testenv.Need(t, "sockets", err)
	v, q, ev := vectorOf(t, d), queueOf(t, d, 64), eventsOf(t, f)
	e, err := d.OpenEndpointFor(other[0])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.Enable(v, q, ev))
	peer := insert(t, v, e)
	fabric.GuardAll(e)
	alias, err := e.OpenAlias(fabric.Sending, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, alias.Close()) }()
	require.Same(t, e.Info(), fabric.InfoOfAlias(alias))
	for _, x := range []turner{e, alias} {
		posts := []fabric.Op{
			{Kind: fabric.OpTaggedSend, Peer: peer, Buf: []byte("not registered")},
			{Kind: fabric.OpReceive, Peer: peer, Buf: make([]byte, 8), Descriptor: 1},
		}
		_, err := x.Turn(posts, nil, 0)
		require.NoError(t, err)
		require.ErrorIs(t, posts[0].Err, fabric.ErrInvalid)
		require.ErrorIs(t, posts[1].Err, fabric.ErrNotSupported)
	}
}

// What was posted through an alias is cancelled through it or through its endpoint; through
// another endpoint of the queue it is not.
func TestCancelThroughEndpointOfAlias(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, _ := stations(t, provider, fabric.TaggedMessages)
		alias, err := a.e.OpenAlias(fabric.Receiving, 0)
		testenv.Need(t, provider+" with aliases", err)
		for _, cancels := range []canceller{alias, a.e} {
			posts := []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 8), Context: 7}}
			_, err := alias.Turn(posts, nil, 0)
			require.NoError(t, err)
			require.Equal(t, fabric.Posted, posts[0].Result)
			require.NoError(t, cancels.Cancel(posts[0].Token))
			done := a.await(t, a)
			require.ErrorIs(t, done.Err, fabric.ErrCanceled)
			require.EqualValues(t, 7, done.Context)
		}
		require.NoError(t, alias.Close())
	})
}

type canceller interface {
	Cancel(token fabric.Token) error
}
