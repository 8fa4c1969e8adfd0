//go:build linux

package fabric_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/fabric"
)

// silent is a peer that is stopped: what is sent to it stays on its way.
type silent struct {
	net.Listener
	address []byte // as an endpoint's
}

func openSilent(t *testing.T) *silent {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	port := l.Addr().(*net.TCPAddr).Port
	return &silent{l, []byte{unix.AF_INET, 0, byte(port >> 8), byte(port), 127, 0, 0, 1, 15: 0}}
}

// halfMessage has an endpoint send a message with the tag 7, and returns what goes over
// the connection, without its last bytes.
func halfMessage(t *testing.T, info *fabric.Info, size int) (seen []byte) {
	t.Helper()
	t.Run("a message", func(t *testing.T) {
		f, d := partsOf(t, info)
		s, to := openStation(t, f, d, info), openSilent(t)
		peer, err := s.v.Insert(to.address)
		require.NoError(t, err)
		op := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 7, Buf: bytes.Repeat([]byte{1}, size)}}
		for op[0].Result = fabric.Refused; op[0].Result == fabric.Refused; {
			s.turn(t, op)
		}
		require.NoError(t, op[0].Err)
		c, err := to.Accept()
		require.NoError(t, err)
		defer c.Close()
		seen = make([]byte, size-size/4)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
		_, err = io.ReadFull(c, seen)
		require.NoError(t, err)
	})
	return seen
}

// say is a peer that begins something and is stopped then.
func say(t *testing.T, to interface{ Name() ([]byte, error) }, what []byte) {
	t.Helper()
	name, err := to.Name()
	require.NoError(t, err)
	c, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: name[4:8], Port: int(name[2])<<8 | int(name[3])})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	_, err = c.Write(what)
	require.NoError(t, err)
}

// Endpoints of a domain end, one after the other, while their peers are stopped, and
// nothing of that is left for those that stay: the domain has room for 128 operations
// under way.
func TestCloseWithStoppedPeers(t *testing.T) {
	info := strewInfo(t, "sockets")
	half := halfMessage(t, info, 100_000)
	f, d := partsOf(t, info)
	a, b := openStation(t, f, d, info), openStation(t, f, d, info)
	a.peer, b.peer = a.insert(t, b), b.insert(t, a)
	orderly(t, a, b, a.peer, b.peer)
	ends := func(t *testing.T, round int) {
		s, peer := openStation(t, f, d, info), openSilent(t)
		to, err := s.v.Insert(peer.address)
		require.NoError(t, err)
		say(t, s.e, half[:10]) // of a header
		say(t, s.e, half)      // with a receive or without
		if round%2 == 0 {
			s.turn(t, []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 7, Buf: make([]byte, 100_000)}})
		}
		for tag := range uint64(8) {
			s.turn(t, []fabric.Op{
				{Kind: fabric.OpTaggedSend, Peer: to, Tag: tag, Buf: make([]byte, 1<<20)},
				{Kind: fabric.OpTaggedInject, Peer: to, Tag: tag, Buf: make([]byte, 8)},
			})
		}
		if round%3 == 0 {
			orderly(t, a, b, a.peer, b.peer)
		}
		require.NoError(t, s.e.Close())
	}
	for round := range 2 {
		t.Run("once", func(t *testing.T) { ends(t, round) })
	}
	before := processHas(t)
	for round := range 30 {
		if !t.Run("again", func(t *testing.T) { ends(t, round) }) {
			return
		}
	}
	before.again(t)
	orderly(t, a, b, a.peer, b.peer)
}

// A context ends in time whose peer is stopped, and so does one that has received half a
// message; the others go on.
func TestCloseContextsWithStoppedPeers(t *testing.T) {
	info := datagramsFor(t, "sockets", fabric.TaggedMessages|fabric.NamedReceiveContexts)
	message := halfMessage(t, info, 100_000)
	several, err := info.WithContexts(2, 1)
	require.NoError(t, err)
	const all = 100_000
	for _, said := range []int{0, 10, all} {
		for _, sends := range []bool{false, true} {
			t.Run("", func(t *testing.T) {
				half := message[:min(said, len(message))]
				t.Cleanup(func() { nothingOpen(t) })
				c := openCorner(t, info)
				v := c.vector(t, fabric.AddressVectorConfig{ReceiveBits: 1})
				s, err := c.domain.OpenScalableEndpoint(several)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, s.Close()) })
				require.NoError(t, s.Enable(v, c.events))
				received := c.queue(t)
				rx, err := s.OpenReceive(0)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, rx.Close()) })
				require.NoError(t, rx.Enable(received))
				var tx [2]*fabric.Context
				var q [2]*fabric.CompletionQueue
				for i := range tx {
					q[i] = c.queue(t)
					tx[i], err = s.OpenSend(i)
					require.NoError(t, err)
					t.Cleanup(func() { require.NoError(t, tx[i].Close()) })
					require.NoError(t, tx[i].Enable(q[i]))
				}
				peer := openSilent(t)
				to, err := v.Insert(peer.address)
				require.NoError(t, err)
				var completions [16]fabric.Completion
				turn := func(x *fabric.Context, op fabric.Op) {
					ops := []fabric.Op{op}
					_, err := x.Turn(ops, completions[:], 0)
					require.NoError(t, err)
					require.Equal(t, fabric.Posted, ops[0].Result)
				}
				buf := make([]byte, 100_000)
				turn(rx, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 7, Buf: buf})
				say(t, s, half)
				for deadline := time.Now().Add(30 * time.Second); len(half) > 10 && buf[0] == 0; {
					require.True(t, time.Now().Before(deadline), "nothing comes")
					_, err := rx.Turn(nil, completions[:], 0)
					require.NoError(t, err)
				}
				if sends {
					for tag := range uint64(4) {
						turn(tx[0], fabric.Op{Kind: fabric.OpTaggedSend, Peer: to, Tag: tag, Buf: make([]byte, 4<<20)})
					}
				}
				require.NoError(t, rx.Close())
				require.Zero(t, received.InFlight())
				require.NoError(t, tx[0].Close())
				require.Zero(t, q[0].InFlight())
				// Its connections may have been ended: it makes others.
				self, ends := insert(t, v, s), false
				for deadline := time.Now().Add(30 * time.Second); !ends; {
					require.True(t, time.Now().Before(deadline), "no send ends")
					ops := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: self, Tag: 9, Buf: make([]byte, 10_000)}}
					n, err := tx[1].Turn(ops, completions[:], 0)
					require.NoError(t, err)
					for _, c := range completions[:n] {
						ends = ends || c.Err == nil
					}
				}
			})
		}
	}
}
