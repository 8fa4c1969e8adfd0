package comm

import (
	"errors"
	"maps"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// narrowWorlds opens a job of two ranks as narrowly does, for a test that closes them.
func (b *bed) narrowWorlds(t *testing.T, config Config) (zero, one *Comm, limit int) {
	t.Helper()
	config.MaxUnexpected = 100_000
	worlds := b.openFor(t, 2, config, efa.Config{WindowMessages: narrow})
	limit, err := worlds[0].EagerLimit(1)
	require.NoError(t, err)
	return worlds[0], worlds[1], limit
}

// endsWell checks what became of one end of a message whose other side, or its own, was
// closed meanwhile: it went through, or that is what the error says.
func endsWell(t *testing.T, q Request) (through bool) {
	t.Helper()
	_, err := q.Wait(deadline(t))
	require.NotErrorIs(t, err, ErrProtocol)
	var lost *RankError
	require.True(t, err == nil || errors.Is(err, net.ErrClosed) || errors.As(err, &lost), "%v", err)
	return err == nil
}

// closing closes a rank, and returns when no message is taken in any more.
func closing(t *testing.T, c *Comm) (wait func() error) {
	t.Helper()
	wait = soon(t, c.Close)
	inRole(t, c, func() bool { return c.engine.closed })
	return wait
}

// A sender closes while its message is announced, and while it waits for room: what is
// matched by then arrives, and nobody takes what crosses with the end for a wrong word.
func TestSenderClosesAmidMessages(t *testing.T) {
	const size = 100_000
	each(t, func(t *testing.T, b *bed) {
		for _, reads := range []bool{true, false} {
			zero, one, _ := b.narrowWorlds(t, Config{NoRemoteReads: !reads})
			out, err := zero.Isend(content(0, 1, size), 1, 0)
			require.NoError(t, err)
			_, err = one.Probe(deadline(t), 0, 0)
			require.NoError(t, err)
			// So that Close has something to wait for.
			hear := deafen(t, one, zero)
			closed := closing(t, zero)
			buf := make([]byte, size)
			in := irecv(t, one, buf, 0, 0)
			hear()
			if endsWell(t, in) {
				same(t, content(0, 1, size), buf)
			}
			endsWell(t, out)
			require.NoError(t, closed())
			require.NoError(t, one.Close())
		}
		zero, one, _ := b.narrowWorlds(t, Config{NoRemoteReads: true})
		out, err := zero.Isend(content(0, 1, size), 1, 0)
		require.NoError(t, err)
		arrive(t, zero, one)
		hear := deafen(t, one, zero)
		buf := make([]byte, size)
		in := irecv(t, one, buf, 0, 0)
		inRole(t, zero, func() bool { return len(zero.engine.sends.live()) == 0 })
		closed := closing(t, zero)
		hear()
		requireReceived(t, in, buf, 1, size)
		finish(t, out)
		require.NoError(t, closed())
		require.NoError(t, one.Close())
	})
}

// Close has the others hear that their sends were matched, although there is no room for
// that just then.
func TestCloseAnswers(t *testing.T) {
	const count = 5 * narrow
	each(t, func(t *testing.T, b *bed) {
		for _, long := range []bool{false, true} {
			zero, one, limit := b.narrowWorlds(t, Config{})
			size := 10
			if long {
				size = limit + 1000
			}
			if long && !one.engine.readsRemotely() {
				// It would have to ask for the message, of who is deaf.
				return
			}
			hear := deafen(t, zero, one)
			var sends []Request
			for i := range count {
				q, err := zero.Issend(content(0, i, size), 1, 0)
				require.NoError(t, err)
				sends = append(sends, q)
			}
			for i := range count {
				expect(t, one, 0, 0, Status{Source: 0, Tag: 0, Length: size}, i)
			}
			closed := closing(t, one)
			hear()
			for _, q := range sends {
				finish(t, q)
			}
			require.NoError(t, closed())
			require.NoError(t, zero.Close())
		}
	})
}

// A receiver closes while it has asked for a message, and while it reads one.
func TestReceiverClosesAmidMessages(t *testing.T) {
	const size = 100_000
	each(t, func(t *testing.T, b *bed) {
		for _, room := range []int{size, 10} {
			zero, one, _ := b.narrowWorlds(t, Config{NoRemoteReads: true})
			out, err := zero.Isend(content(0, 1, size), 1, 0)
			require.NoError(t, err)
			arrive(t, zero, one)
			hear := deafen(t, zero, one)
			in := irecv(t, one, make([]byte, room), 0, 0)
			inRole(t, one, func() bool { return len(one.engine.receives.live()) == 1 })
			closed := closing(t, one)
			hear()
			var truncated *TruncationError
			if _, err := in.Wait(deadline(t)); err != nil && !errors.As(err, &truncated) {
				require.ErrorIs(t, err, net.ErrClosed)
			}
			endsWell(t, out)
			require.NoError(t, closed())
			require.NoError(t, zero.Close())
		}
		worlds := b.openFor(t, 2, Config{}, efa.Config{})
		zero, one := worlds[0], worlds[1]
		out, err := zero.Isend(make([]byte, 8<<20), 1, 0)
		require.NoError(t, err)
		_, err = one.Probe(deadline(t), 0, 0)
		require.NoError(t, err)
		in := irecv(t, one, make([]byte, 8<<20), 0, 0)
		require.NoError(t, one.Close())
		endsWell(t, in)
		endsWell(t, out)
		require.NoError(t, zero.Close())
	})
}

// A communicator that is closed keeps nothing that nobody can receive any more, and what
// comes for it later neither. A receive that was posted before has its message.
func TestClosedCommunicatorKeepsNothing(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, limit := b.pair(t)
		for range 20 {
			all := twins(t, []*Comm{zero, one})
			send := func(size, tag int) {
				_, err := all[0].Isend(content(0, tag, size), 1, tag)
				require.NoError(t, err)
			}
			for i := range 5 {
				send(100, 1)
				send(limit+1, i)
			}
			own, err := all[1].Issend(nil, 1, 7)
			require.NoError(t, err)
			buf := make([]byte, 100)
			q := irecv(t, all[1], buf, 0, 9)
			arrive(t, zero, one)
			require.NoError(t, all[1].Close())
			require.NoError(t, all[1].Close())
			_, err = own.Wait(deadline(t))
			require.ErrorIs(t, err, net.ErrClosed)
			send(100, 1)
			send(limit+1, 2)
			send(100, 9)
			require.Equal(t, Status{Source: 0, Tag: 9, Length: 100}, finish(t, q))
			require.Equal(t, content(0, 9, 100), buf)
			arrive(t, zero, one)
			bytes, messages, _ := used(one)
			require.Zero(t, bytes)
			require.Zero(t, messages)
			require.NoError(t, all[0].Close())
		}
		var unclosed int
		one.engine.do(func(efa.Progress) { unclosed = len(one.engine.unclosed) })
		require.Zero(t, unclosed)
	})
}

// That a rank has closed a communicator is kept once, and until this one has.
func TestGoneIsKeptOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, _ := b.pair(t)
		all := twins(t, []*Comm{zero, one})
		context := all[0].contextOf(1)
		for _, of := range []uint32{context, context, context + 1, worldContext, 1 << 20} {
			say(t, zero, 1, headOf(header{kind: kindGone, context: of}), nil)
		}
		require.NoError(t, all[0].Close())
		// The answer comes behind all that on the connection.
		sent := soon(t, func() error { return one.Ssend(deadline(t), nil, 0, 0) })
		_, err := zero.Recv(deadline(t), nil, 1, 0)
		require.NoError(t, err)
		require.NoError(t, sent())
		absent := func() (ranks map[uint32][]int) {
			one.engine.do(func(efa.Progress) { ranks = maps.Clone(one.engine.absent) })
			return ranks
		}
		require.Equal(t, map[uint32][]int{context: {0}}, absent())
		bytes, _, _ := used(one)
		require.Zero(t, bytes, "of what messages may take")
		require.NoError(t, all[1].Close())
		require.Empty(t, absent())
	})
}
