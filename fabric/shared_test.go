package fabric_test

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
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

// What has come for an endpoint into a shared context is there for who receives from that,
// also after the endpoint is closed. What was freed is not what it was, so this is a process of
// its own.
func TestSharedReceiveOutlivesEndpoint(t *testing.T) {
	const child = "WEFT_TEST_SHARED"
	if !slices.Contains(testenv.Providers(), "sockets") {
		return
	}
	if os.Getenv(child) == "" {
		command := testprocess.Command(t, os.Args[0], "-test.run=^TestSharedReceiveOutlivesEndpoint$", "-test.count=1", "-test.timeout=1m")
		command.Env = append(os.Environ(), child+"=yes", "MALLOC_PERTURB_=165")
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s", said)
		return
	}
	info := datagramsFor(t, "sockets", fabric.Messages|fabric.TaggedMessages)
	sharing, err := info.WithContexts(1, fabric.SharedContext)
	require.NoError(t, err)
	c := openCorner(t, info)
	pool := c.queue(t)
	srx, err := c.domain.OpenSharedReceive(sharing, pool)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srx.Close()) })
	end, v := c.endpoint(t, sharing, fabric.Bindings{Events: c.events, Send: c.queue(t), Receive: pool, SharedReceive: srx})
	from, _ := c.endpoint(t, info, fabric.Bindings{Events: c.events, Vector: v})
	peer := insert(t, v, end.e)
	text := bytes.Repeat([]byte{3}, 300_000)
	receive := func(tag uint64, room int) (fabric.Completion, []byte) {
		buf := make([]byte, room)
		post := []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: buf, Context: tag}}
		var got [1]fabric.Completion
		n, err := srx.Turn(post, got[:], 0)
		require.NoError(t, err)
		require.Equal(t, fabric.Posted, post[0].Result)
		for deadline := time.Now().Add(30 * time.Second); n == 0; {
			require.True(t, time.Now().Before(deadline), "nothing comes")
			n, err = srx.TurnWait(nil, got[:], 100)
			require.NoError(t, err)
		}
		require.Equal(t, tag, got[0].Context)
		return got[0], buf
	}
	for tag, length := range []int{len(text), 8, 300, 0} {
		post := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: peer, Tag: uint64(tag), Buf: text[:length]}}
		_, err := from.Turn(post, nil, 0)
		require.NoError(t, err)
		require.Equal(t, fabric.Posted, post[0].Result)
	}
	receive(3, 8) // what was sent before is there, too
	require.NoError(t, end.e.Close())
	got, buf := receive(0, len(text))
	require.NoError(t, got.Err)
	require.True(t, bytes.Equal(text, buf))
	got, _ = receive(1, 8)
	require.NoError(t, got.Err)
	got, _ = receive(2, 8)
	require.ErrorIs(t, got.Err, fabric.ErrTruncated)
	require.Zero(t, pool.InFlight())

	// In the middle of one, too, whose rest never comes. After so many, the oldest are closed.
	before := descriptors(t)
	for round := range 40 {
		end, _ := c.endpoint(t, sharing, fabric.Bindings{Events: c.events, Vector: v, Send: c.queue(t), Receive: pool, SharedReceive: srx})
		peer := insert(t, v, end.e)
		post := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 4, Buf: text}}
		_, err := from.Turn(post, nil, 0)
		require.NoError(t, err)
		require.Equal(t, fabric.Posted, post[0].Result)
		var none [8]fabric.Completion
		for range round {
			_, err = from.TurnWait(nil, none[:], 0)
			require.NoError(t, err)
		}
		require.NoError(t, end.e.Close())
		post = []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 4, Buf: make([]byte, 8)}}
		_, err = srx.Turn(post, none[:], 0)
		require.NoError(t, err)
		for range 20 {
			_, err = srx.TurnWait(nil, none[:], 1)
			require.NoError(t, err)
			_, err = from.TurnWait(nil, none[:], 1)
			require.NoError(t, err)
		}
	}
	require.Less(t, descriptors(t)-before, 200)

	// Of so many, each of which has a message there that nobody has received yet, no other one is
	// opened.
	const many = 128
	sends := c.queue(t)
	bindings := fabric.Bindings{Events: c.events, Vector: v, Send: sends, Receive: pool, SharedReceive: srx}
	before = descriptors(t)
	opened := 0
	for ; opened <= many; opened++ {
		e, err := c.domain.OpenEndpointFor(sharing)
		require.NoError(t, err)
		if err = e.EnableWith(bindings); err != nil {
			require.ErrorIs(t, err, fabric.ErrBusy)
			require.ErrorContains(t, err, "have to be received")
			require.NoError(t, e.Close())
			break
		}
		peer := insert(t, v, e)
		post := []fabric.Op{
			{Kind: fabric.OpTaggedSend, Peer: peer, Tag: uint64(100 + opened), Buf: text[:8]},
			{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 99, Buf: nil},
		}
		var none [8]fabric.Completion
		_, err = from.Turn(post, none[:], 0)
		require.NoError(t, err)
		require.Equal(t, fabric.Posted, post[1].Result)
		got, _ := receive(99, 8)
		require.NoError(t, got.Err)
		require.NoError(t, e.Close())
	}
	require.Less(t, opened, many+1)
	require.Greater(t, opened, many-50)
	for i := range opened {
		got, buf := receive(uint64(100+i), 8)
		require.NoError(t, got.Err)
		require.Equal(t, text[:8], buf)
	}
	last, _ := c.endpoint(t, sharing, bindings)
	require.NoError(t, last.e.Close())
	require.Less(t, descriptors(t)-before, 200, "endpoints whose messages have been received stay open inside")
}
