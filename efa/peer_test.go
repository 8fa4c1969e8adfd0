package efa

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// send puts a message on the wire that no correct peer would send.
func (c *Conn) sendRaw(tag uint64, body []byte) {
	r := c.reactor
	r.do(func() {
		op := r.newOperation(c, controlSend)
		op.tag, op.kind = tag, fabric.OpTaggedSend
		if err := r.lend(op, append([]byte(nil), body...)); err != nil {
			panic(err)
		}
		r.arbiter.Push(&c.queue, op)
	})
}

func lengthOf(n int64, payload ...byte) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(n)), payload...)
}

// requireProtocolError reads until the connection has ended for what its peer did:
// what was legal before it may still be read. reason is what errors.As looks for, or
// nil.
func requireProtocolError(t *testing.T, victim *Conn, reason any) {
	t.Helper()
	var err error
	for range 100 {
		if _, err = victim.ReadMessage(deadline(t), make([]byte, 2<<20)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, ErrProtocol)
	if reason != nil {
		require.ErrorAs(t, err, reason)
	}
}

// What a bad peer sends ends its own connection with a typed error, and no other.
func TestBadPeer(t *testing.T) {
	cases := []struct {
		name   string
		send   func(c *Conn)
		reason any // what the error is as
	}{
		{"negative length", func(c *Conn) { c.sendRaw(tagged.LengthTag(c.remoteID, 0), lengthOf(-1)) }, new(*tagged.LengthError)},
		{"huge length", func(c *Conn) { c.sendRaw(tagged.LengthTag(c.remoteID, 0), lengthOf(1<<62)) }, new(*tagged.LengthError)},
		{"short length message", func(c *Conn) { c.sendRaw(tagged.LengthTag(c.remoteID, 0), []byte{1, 2, 3}) }, new(*tagged.LengthError)},
		{"eager payload of another length", func(c *Conn) { c.sendRaw(tagged.LengthTag(c.remoteID, 0), lengthOf(5, 1, 2, 3)) }, new(*tagged.LengthError)},
		{"id far ahead", func(c *Conn) { c.sendRaw(tagged.LengthTag(c.remoteID, 1000), lengthOf(1, 9)) }, new(*tagged.SequenceError)},
		{"duplicate id", func(c *Conn) {
			for range 2 {
				c.sendRaw(tagged.LengthTag(c.remoteID, 1), lengthOf(1, 9))
			}
		}, new(*tagged.SequenceError)},
		{"more than there is credit for", func(c *Conn) {
			for i := range 40 {
				c.sendRaw(tagged.LengthTag(c.remoteID, uint32(i)), lengthOf(1<<20))
			}
		}, new(*tagged.CreditError)},
		{"short payload", func(c *Conn) {
			c.sendRaw(tagged.LengthTag(c.remoteID, 0), lengthOf(5000))
			c.sendRaw(tagged.PayloadTag(c.remoteID, 0), make([]byte, 200))
		}, nil},
		{"garbage on the control tag", func(c *Conn) { c.sendRaw(tagged.ControlTag(c.remoteID, 0), []byte("garbage")) }, new(*tagged.ControlError)},
		{"credit for what was never sent", func(c *Conn) {
			grant := make([]byte, tagged.ControlSize)
			tagged.PutControl(grant, tagged.Control{Type: tagged.ControlCredit, Messages: 99, Bytes: 99})
			c.sendRaw(tagged.ControlTag(c.remoteID, 0), grant)
		}, new(*tagged.CreditError)},
	}
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		good, goodEnd := join(t, from, to)
		for _, test := range cases {
			t.Run(test.name, func(t *testing.T) {
				ctx := deadline(t)
				bad, victim := join(t, from, to)
				test.send(bad)
				requireProtocolError(t, victim, test.reason)
				require.NoError(t, good.WriteMessage(ctx, message(1, 2, 3000)))
				buf := make([]byte, 3000)
				n, err := goodEnd.ReadMessage(ctx, buf)
				require.NoError(t, err)
				require.Equal(t, message(1, 2, 3000), buf[:n])
				require.NoError(t, victim.Close())
				require.NoError(t, bad.CloseNow())
			})
		}
		closeBoth(t, good, goodEnd)
	})
}

// Messages for no connection, and messages in the name of another peer, are
// dropped and counted, and nobody suffers.
func TestStrayMessages(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to, third := b.open(t, Config{}), b.open(t, Config{}), b.open(t, Config{})
		ctx := deadline(t)
		good, goodEnd := join(t, from, to)
		other, otherEnd := join(t, third, to)
		before := to.Stats().Dropped
		other.sendRaw(tagged.LengthTag(tagged.HandshakeID, 7), lengthOf(5, 1, 2, 3, 4, 5))
		other.sendRaw(tagged.LengthTag(1<<30-1, 7), lengthOf(0))
		// In the name of the first.
		other.sendRaw(tagged.LengthTag(good.remoteID, 0), lengthOf(3, 1, 2, 3))
		other.sendRaw(tagged.ControlTag(good.remoteID, 0), []byte("garbage"))
		require.NoError(t, other.WriteMessage(ctx, []byte("last")))
		buf := make([]byte, 100)
		n, err := otherEnd.ReadMessage(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, "last", string(buf[:n]))
		require.NoError(t, good.WriteMessage(ctx, []byte("genuine")))
		n, err = goodEnd.ReadMessage(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, "genuine", string(buf[:n]))
		require.Eventually(t, func() bool { return to.Stats().Dropped-before == 4 }, patience, time.Millisecond)
		closeBoth(t, good, goodEnd)
		closeBoth(t, other, otherEnd)
	})
}
