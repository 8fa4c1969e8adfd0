package fabric_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testprocess"
)

// sides opens two stations of two domains that know each other.
func sides(t *testing.T, info *fabric.Info) (from, to *station) {
	t.Helper()
	f, d := partsOf(t, info)
	from = openStation(t, f, d, info)
	f, d = partsOf(t, info)
	to = openStation(t, f, d, info)
	from.peer, to.peer = from.insert(t, to), to.insert(t, from)
	return from, to
}

// sendUnexpected sends a message, and waits until it is there.
func sendUnexpected(t *testing.T, from, to *station, op fabric.Op) {
	t.Helper()
	op.Peer = from.peer
	from.must(t, to, op)
	arrive(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Peer: from.peer, Tag: 1 << 20})
}

// arrive waits until what was sent before is there, too.
func arrive(t *testing.T, from, to *station, last fabric.Op) {
	t.Helper()
	from.must(t, to, last)
	to.must(t, from, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: last.Tag, Context: last.Tag})
	for c := (fabric.Completion{}); c.Kind != fabric.OpTaggedReceive || c.Context != last.Tag; {
		c = to.await(t, from)
		require.NoError(t, c.Err)
	}
}

// end closes the endpoint, and waits until the other has closed its connection.
func end(t *testing.T, s, other *station) {
	t.Helper()
	require.NoError(t, s.e.Close())
	awaitConnectionsEnd(t, other)
}

// awaitConnectionsEnd waits until an endpoint has closed the connections that others have made.
func awaitConnectionsEnd(t *testing.T, other *station) {
	t.Helper()
	name, err := other.e.Name()
	require.NoError(t, err)
	port := int(binary.BigEndian.Uint16(name[2:]))
	for deadline := time.Now().Add(30 * time.Second); slices.Contains(connectedPorts(t), port); other.turn(t, nil) {
		require.True(t, time.Now().Before(deadline), "the connection stays open")
	}
}

// What libfabric keeps of a message until somebody receives it stays as it is, however long
// it is.
func TestUnexpectedOfEveryLength(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm"} {
		t.Run(provider, func(t *testing.T) {
			info := strewInfo(t, provider)
			f, d := partsOf(t, info)
			from, to := openStation(t, f, d, info), openStation(t, f, d, info)
			from.peer, to.peer = from.insert(t, to), to.insert(t, from)
			random := rand.New(rand.NewPCG(1, 2))
			text := make([]byte, 1200)
			for i := range text {
				text[i] = byte(random.Uint32())
			}
			const batch = 60
			for first := 0; first < len(text); first += batch {
				for n := first; n < first+batch; n++ {
					from.must(t, to, fabric.Op{Kind: fabric.OpTaggedSend, Peer: from.peer, Tag: uint64(n), Buf: text[:n]})
				}
				arrive(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Peer: from.peer, Tag: 1 << 20})
				from.got = nil
				for n := first; n < first+batch; n++ {
					buf := make([]byte, n)
					to.must(t, from, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(n), Buf: buf})
					c := to.await(t, from)
					require.NoError(t, c.Err)
					require.Equal(t, n, c.Len)
					require.True(t, bytes.Equal(text[:n], buf), "message of %d bytes", n)
				}
			}
		})
	}
}

// A receive that gets a message above 16 KiB whose sender is gone ends with an error, and
// nothing else does, however it is received.
func TestSenderOfLongMessageIsGone(t *testing.T) {
	info := strewInfo(t, "tcp")
	text := bytes.Repeat([]byte{7}, long)
	lost := func(t *testing.T, s, other *station, context uint64) fabric.Completion {
		t.Helper()
		c := s.await(t, other)
		require.Equal(t, context, c.Context)
		require.ErrorIs(t, c.Err, fabric.ErrUnreachable)
		return c
	}
	nothing := func(t *testing.T, s *station) {
		t.Helper()
		for range 100 {
			s.turn(t, nil)
		}
		require.Empty(t, s.got)
	}
	tagged := fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Context: 5, Buf: make([]byte, long)}

	t.Run("tagged", func(t *testing.T) {
		from, to := sides(t, info)
		sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: 3, Buf: text})
		end(t, from, to)
		require.Equal(t, 0, to.q.InFlight())
		to.must(t, to, tagged)
		lost(t, to, to, 5)
		require.Equal(t, 0, to.q.InFlight())
		nothing(t, to)
	})
	t.Run("without sources", func(t *testing.T) {
		from, to := sides(t, infoOf(t, withCollectives))
		sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: 3, Buf: text})
		end(t, from, to)
		to.must(t, to, tagged)
		lost(t, to, to, 5)
		nothing(t, to)
	})
	t.Run("peer removed", func(t *testing.T) {
		from, to := sides(t, info)
		sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: 3, Buf: text})
		require.NoError(t, to.v.Remove(to.peer))
		end(t, from, to)
		to.must(t, to, tagged)
		lost(t, to, to, 5)
		nothing(t, to)
	})
	t.Run("of several buffers", func(t *testing.T) {
		from, to := sides(t, info)
		sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: 3, Vector: [][]byte{text[:5], text[5:100_000], text[100_000:]}})
		end(t, from, to)
		to.must(t, to, tagged)
		lost(t, to, to, 5)
		nothing(t, to)
	})
	t.Run("claimed", func(t *testing.T) {
		from, to := sides(t, info)
		sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: 3, Buf: text})
		to.must(t, from, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Flags: fabric.Peek | fabric.Claim})
		c := to.await(t, from)
		require.NoError(t, c.Err)
		end(t, from, to)
		receive := tagged
		receive.Flags, receive.Claimed = fabric.Claim, c.Token
		to.must(t, to, receive)
		lost(t, to, to, 5)
		require.Equal(t, 0, to.q.InFlight())
		nothing(t, to)
	})
	t.Run("discarded", func(t *testing.T) {
		from, to := sides(t, info)
		sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: 3, Buf: text})
		end(t, from, to)
		to.must(t, to, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Context: 5, Flags: fabric.Peek | fabric.Discard})
		require.NoError(t, to.await(t, to).Err)
		nothing(t, to)
	})
	t.Run("multi-receive", func(t *testing.T) {
		from, to := sides(t, info)
		for range 2 {
			sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpSend, Buf: text[:100_000]})
		}
		end(t, from, to)
		buf := make([]byte, 3*long)
		receive := fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Context: 5, Buf: buf, Flags: fabric.MultiReceive}
		to.must(t, to, receive)
		for range 2 {
			require.True(t, lost(t, to, to, 5).Released)
			to.must(t, to, receive)
		}
		f, d := partsOf(t, info)
		another := openStation(t, f, d, info)
		another.peer = another.insert(t, to)
		another.must(t, to, fabric.Op{Kind: fabric.OpSend, Peer: another.peer, Buf: text[:50_000]})
		c := to.await(t, another)
		require.NoError(t, c.Err)
		require.True(t, bytes.Equal(text[:50_000], buf[c.Offset:c.Offset+c.Len]))
		require.False(t, c.Released)
		require.Zero(t, to.q.Strays())
	})
	t.Run("awaited", func(t *testing.T) {
		from, to := sides(t, info)
		sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: 3, Buf: text})
		end(t, from, to)
		// In the same call, however long that would wait.
		var got [2]fabric.Completion
		n, err := to.e.TurnWait([]fabric.Op{tagged}, got[:], math.MaxInt32)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.ErrorIs(t, got[0].Err, fabric.ErrUnreachable)
	})
	t.Run("whose place has another", func(t *testing.T) {
		from, to := sides(t, info)
		sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: 3, Buf: text})
		end(t, from, to)
		f, d := partsOf(t, info)
		another := openStation(t, f, d, info)
		another.peer, to.peer = another.insert(t, to), to.insert(t, another)
		sendUnexpected(t, another, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: 4, Buf: text})
		to.must(t, another, tagged)
		lost(t, to, another, 5)
		// The other connection is as before, in both directions.
		receive := tagged
		receive.Tag = 4
		to.must(t, another, receive)
		c := to.await(t, another)
		require.NoError(t, c.Err)
		require.Equal(t, to.peer, c.Source)
		require.True(t, bytes.Equal(text, receive.Buf))
		sendUnexpected(t, to, another, fabric.Op{Kind: fabric.OpTaggedSend, Tag: 3, Buf: text})
		another.must(t, to, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Buf: make([]byte, long)})
		require.NoError(t, another.await(t, to).Err)
	})
	t.Run("counted", func(t *testing.T) {
		from, _ := sides(t, info)
		f, d := partsOf(t, info)
		ev := eventsOf(t, f)
		to := &station{info: info, domain: d, q: queueOf(t, d, 512), v: vectorOf(t, d), e: endpointOf(t, d)}
		counter, err := d.OpenCounter()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, counter.Close()) })
		t.Cleanup(func() { require.NoError(t, to.e.Close()) })
		require.NoError(t, to.e.EnableWith(fabric.Bindings{
			Vector: to.v, Send: to.q, Receive: to.q, Events: ev,
			Counters: []fabric.CounterBinding{{Counter: counter, Events: fabric.CountReceives}},
		}))
		from.peer = from.insert(t, to)
		sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: 3, Buf: text})
		end(t, from, to)
		to.must(t, to, tagged)
		lost(t, to, to, 5)
		n, err := counter.Errors()
		require.NoError(t, err)
		require.Equal(t, uint64(1), n)
	})
}

// The environment says how long the buffers are that messages come in; of none at all it says
// something, too.
func TestSenderIsGoneWithBuffersOfOtherLengths(t *testing.T) {
	for length, test := range map[string]string{
		"1024":   "TestSenderOfLongMessageIsGone",
		"0x4E20": "TestSenderOfLongMessageIsGone",
		"":       "TestUnexpectedOfEveryLength$/^tcp",
	} {
		command := testprocess.Command(t, os.Args[0], "-test.run=^"+test+"$", "-test.count=1", "-test.timeout=2m")
		command.Env = append(os.Environ(), "FI_OFI_RXM_BUFFER_SIZE="+length)
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%q: %s", length, said)
	}
}
