package comm

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// pair opens a job of two ranks in this process.
func (b *bed) pair(t *testing.T) (zero, one *Comm, limit int) {
	t.Helper()
	worlds := b.open(t, 2, Config{}, efa.Config{})
	limit, err := worlds[0].EagerLimit(1)
	require.NoError(t, err)
	return worlds[0], worlds[1], limit
}

// isend sends in the background of the test, which waits for it at its end.
func isend(t *testing.T, c *Comm, buf []byte, dest, tag int) {
	t.Helper()
	q, err := c.Isend(buf, dest, tag)
	require.NoError(t, err)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := q.Wait(ctx)
		require.NoError(t, err)
	})
}

// expect receives a message, which is to be the i-th of the sender.
func expect(t *testing.T, c *Comm, source, tag int, want Status, i int) {
	t.Helper()
	buf := make([]byte, want.Length+1)
	status, err := c.Recv(deadline(t), buf, source, tag)
	require.NoError(t, err)
	require.Equal(t, want, status)
	require.Equal(t, content(want.Source, i, want.Length), buf[:want.Length])
}

// arrive waits until this rank has the last message that the other has sent before,
// with this tag, and takes that out.
func arrive(t *testing.T, from, to *Comm) {
	t.Helper()
	const tag = MaxTag
	require.NoError(t, from.Send(deadline(t), nil, to.Rank(), tag))
	_, err := to.Recv(deadline(t), nil, from.Rank(), tag)
	require.NoError(t, err)
}

// kinds are message lengths of each protocol.
func kinds(limit int) map[string]int { return map[string]int{"eager": 64, "rendezvous": limit + 1000} }

// The earliest receive that takes a message gets it, exact or not.
func TestEarliestReceive(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, limit := b.pair(t)
		for _, size := range kinds(limit) {
			for _, order := range [][2]int{{7, AnyTag}, {AnyTag, 7}} {
				for _, source := range [][2]int{{0, AnySource}, {AnySource, 0}} {
					var bufs [2][]byte
					var requests [2]Request
					for i := range requests {
						bufs[i] = make([]byte, size)
						var err error
						requests[i], err = one.Irecv(bufs[i], source[i], order[i])
						require.NoError(t, err)
					}
					for i, q := range requests {
						require.NoError(t, zero.Send(deadline(t), content(0, i, size), 1, 7))
						_, err := q.Wait(deadline(t))
						require.NoError(t, err)
						require.Equal(t, content(0, i, size), bufs[i])
					}
				}
			}
		}
	})
}

// Of what waits, exact tags are taken in any order.
func TestUnexpectedInReverse(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, limit := b.pair(t)
		for name, size := range kinds(limit) {
			count := 1000
			if name == "rendezvous" {
				count = 20
			}
			for i := range count {
				isend(t, zero, content(0, i, size), 1, i)
			}
			for i := count - 1; i >= 0; i-- {
				expect(t, one, 0, i, Status{Source: 0, Tag: i, Length: size}, i)
			}
		}
	})
}

// Any source of several, and the highest tags.
func TestAnySourceOfSeveral(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		worlds := b.open(t, 4, Config{}, efa.Config{})
		ctx := deadline(t)
		onAll(worlds, func(rank int, c *Comm) {
			if rank > 0 {
				check(t, c.Send(ctx, content(rank, 0, 100), 0, MaxTag-rank) == nil, "send of %d", rank)
				return
			}
			seen := make(map[int]bool)
			for range 3 {
				buf := make([]byte, 100)
				status, err := c.Recv(ctx, buf, AnySource, AnyTag)
				check(t, err == nil && status.Tag == MaxTag-status.Source && !seen[status.Source], "%v, %v", status, err)
				check(t, string(buf) == string(content(status.Source, 0, 100)), "content of %d", status.Source)
				seen[status.Source] = true
			}
		})
	})
}

// A message to this rank itself, by each protocol, before and after its receive.
func TestSelf(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		worlds := b.open(t, 1, Config{}, efa.Config{})
		c := worlds[0]
		for _, size := range []int{0, 10, 1 << 20} {
			for _, synchronous := range []bool{false, true} {
				send := c.Isend
				if synchronous {
					send = c.Issend
				}
				q, err := send(content(0, 1, size), 0, 3)
				require.NoError(t, err)
				if synchronous || size > eagerLimit {
					_, done, err := q.Test()
					require.NoError(t, err)
					require.False(t, done, "there is no receive yet")
				}
				expect(t, c, AnySource, AnyTag, Status{Source: 0, Tag: 3, Length: size}, 1)
				_, err = q.Wait(deadline(t))
				require.NoError(t, err)
				buf := make([]byte, size)
				r, err := c.Irecv(buf, 0, 3)
				require.NoError(t, err)
				q, err = send(content(0, 2, size), 0, 3)
				require.NoError(t, err)
				require.NoError(t, WaitAll(deadline(t), []Request{q, r}))
				require.Equal(t, content(0, 2, size), buf)
			}
		}
	})
}

// Eager: the buffer is the sender's on return.
func TestEagerCopies(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, limit := b.pair(t)
		buf := make([]byte, limit)
		for i := range 50 {
			copy(buf, content(0, i, limit))
			require.NoError(t, zero.Send(deadline(t), buf, 1, i))
			clear(buf)
		}
		for i := range 50 {
			expect(t, one, 0, i, Status{Source: 0, Tag: i, Length: limit}, i)
		}
	})
}

// Wrong arguments are named, and nothing is sent.
func TestWrongArguments(t *testing.T) {
	each(t, func(t *testing.T, on *bed) {
		if on.Name != "fake" {
			return
		}
		zero, _, _ := on.pair(t)
		ctx := context.Background()
		var wrong *ArgumentError
		for _, err := range []error{
			zero.Send(ctx, nil, 2, 0), zero.Send(ctx, nil, -1, 0), zero.Send(ctx, nil, 1, -1), zero.Send(ctx, nil, 1, MaxTag+1),
			second(zero.Recv(ctx, nil, 2, 0)), second(zero.Recv(ctx, nil, -2, 0)), second(zero.Recv(ctx, nil, 0, -2)),
			second(zero.Probe(ctx, 5, 0)), second(zero.Mprobe(ctx, 5, 0)), second(zero.Split(ctx, -2, 0)),
			second(zero.SendInit(nil, 9, 0)), second(zero.EagerLimit(2)),
		} {
			require.ErrorAs(t, err, &wrong)
		}
	})
}

func second[T any](_ T, err error) error { return err }
