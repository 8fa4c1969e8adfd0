package comm

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// cut ends a rank's connections as the end of its process would, and its world.
func cut(t *testing.T, c *Comm) {
	t.Helper()
	for _, p := range c.engine.peers {
		if p.conn != nil {
			_ = p.conn.CloseNow()
		}
	}
	_ = c.Close()
}

// requireRankLost checks the error of a call that had to do with a lost rank.
func requireRankLost(t *testing.T, err error, rank int) {
	t.Helper()
	var lost *RankError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, rank, lost.Rank)
	require.True(t, errors.Is(err, efa.ErrPeerLost) || errors.Is(err, ErrLeft) || errors.Is(err, io.EOF), "%v", err)
}

// Whatever waits for a rank that is lost ends, by each protocol, and the others go
// on; what had come from it is received.
func TestRankIsLost(t *testing.T) {
	for _, size := range []int{10, 100_000, 10 << 20} {
		each(t, func(t *testing.T, b *bed) {
			worlds := b.openFor(t, 3, Config{}, efa.Config{})
			zero, one, two := worlds[0], worlds[1], worlds[2]
			ctx := deadline(t)

			require.NoError(t, two.Send(ctx, content(2, 1, 20), 0, 50))
			arrive(t, two, zero)
			posted, err := zero.Irecv(make([]byte, size), 2, 1)
			require.NoError(t, err)
			anybody, err := zero.Irecv(make([]byte, size), AnySource, 2)
			require.NoError(t, err)
			fromOne, err := zero.Irecv(make([]byte, size), 1, 3)
			require.NoError(t, err)
			synchronous, err := zero.Issend(content(0, 1, size), 2, 4)
			require.NoError(t, err)
			looking := make(chan error, 1)
			go func() {
				_, err := zero.Probe(ctx, 2, 60)
				looking <- err
			}()
			cut(t, two)
			for _, q := range []Request{posted, anybody, synchronous} {
				_, err := q.Wait(ctx)
				requireRankLost(t, err, 2)
			}
			requireRankLost(t, <-looking, 2)
			requireRankLost(t, zero.Send(ctx, nil, 2, 1), 2)
			_, err = zero.Recv(ctx, nil, 2, 1)
			requireRankLost(t, err, 2)
			_, err = zero.Recv(ctx, nil, AnySource, 1)
			requireRankLost(t, err, 2)
			expect(t, zero, 2, 50, Status{Source: 2, Tag: 50, Length: 20}, 1)

			isend(t, one, content(1, 1, size), 0, 3)
			status, err := fromOne.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, Status{Source: 1, Tag: 3, Length: size}, status)
			require.Empty(t, zero.engine.sends.live())
			require.Empty(t, zero.engine.receives.live())
		})
	}
}

// A rank that is lost in the middle of a long message, on either side of it.
func TestRankIsLostInRendezvous(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, sender := range []bool{false, true} {
			worlds := b.openFor(t, 2, Config{}, efa.Config{})
			ctx := deadline(t)
			const size = 32 << 20
			out, err := worlds[0].Isend(make([]byte, size), 1, 0)
			require.NoError(t, err)
			in, err := worlds[1].Irecv(make([]byte, size), 0, 0)
			require.NoError(t, err)
			lost, left := worlds[0], in
			if !sender {
				lost, left = worlds[1], out
			}
			cut(t, lost)
			// It may have been through already.
			if _, err := left.Wait(ctx); err != nil {
				requireRankLost(t, err, lost.Rank())
			}
		}
	})
}

// Close ends what is still waited for.
func TestCloseEndsWhatWaits(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		worlds := b.openFor(t, 2, Config{}, efa.Config{})
		in, err := worlds[0].Irecv(make([]byte, 10), 1, 0)
		require.NoError(t, err)
		out, err := worlds[0].Issend(make([]byte, 100_000), 1, 0)
		require.NoError(t, err)
		self, err := worlds[0].Issend(nil, 0, 0)
		require.NoError(t, err)
		require.NoError(t, worlds[0].Close())
		for _, q := range []Request{in, out, self} {
			_, err := q.Wait(deadline(t))
			require.ErrorIs(t, err, net.ErrClosed)
		}
		require.ErrorIs(t, worlds[0].Send(deadline(t), nil, 1, 0), net.ErrClosed)
		_, _, err = worlds[0].Iprobe(AnySource, AnyTag)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// Synchronous sends that wait for room at a receiver that takes nothing, not even what
// was sent to it, end with its loss, once.
func TestRankIsLostWhileSendsWait(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		worlds := b.openFor(t, 2, Config{}, efa.Config{WindowMessages: 4})
		zero, one := worlds[0], worlds[1]
		held, release := make(chan struct{}), make(chan struct{})
		go one.engine.do(func(efa.Progress) {
			close(held)
			<-release
		})
		<-held
		var requests []Request
		for i := range 40 {
			q, err := zero.Issend(content(0, i, 50), 1, i)
			require.NoError(t, err)
			requests = append(requests, q)
		}
		_ = zero.engine.peers[1].conn.CloseNow()
		for _, q := range requests {
			_, err := q.Wait(deadline(t))
			var lost *RankError
			require.ErrorAs(t, err, &lost)
			require.Equal(t, 1, lost.Rank)
		}
		require.Empty(t, zero.engine.sends.live())
		// The operations are used again, and nothing of before comes to them.
		for i := range 100 {
			isend(t, zero, content(0, i, 50), 0, i)
			expect(t, zero, 0, i, Status{Source: 0, Tag: i, Length: 50}, i)
		}
		close(release)
	})
}
