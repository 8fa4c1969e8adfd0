package comm

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// A request that is done cannot be canceled any more.
func TestCancelOfWhatIsDone(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, _ := b.pair(t)
		buf := make([]byte, 10)
		q, err := one.Irecv(buf, 0, 1)
		require.NoError(t, err)
		isend(t, zero, content(0, 1, 10), 1, 1)
		arrive(t, zero, one)
		q.Cancel()
		status, err := q.Wait(deadline(t))
		require.NoError(t, err)
		require.Equal(t, Status{Source: 0, Tag: 1, Length: 10}, status)
	})
}

// A context that ends leaves the message to the next receive.
func TestReceiveGivesUp(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, limit := b.pair(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := one.Recv(ctx, make([]byte, 10), AnySource, AnyTag)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = one.Probe(ctx, AnySource, AnyTag)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		q, err := one.Irecv(make([]byte, limit), AnySource, AnyTag)
		require.NoError(t, err)
		for range 3 {
			_, err = q.Wait(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		isend(t, zero, content(0, 1, limit), 1, 1)
		status, err := q.Wait(deadline(t))
		require.NoError(t, err)
		require.Equal(t, limit, status.Length)
	})
}

// A send that gives up before there is a receive is in flight until then.
func TestSendGivesUp(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, limit := b.pair(t)
		for _, size := range []int{10, limit + 1} {
			var in *efa.InFlightError
			for wait := time.Millisecond; in == nil; wait *= 2 {
				// Whoever has so little time may not come to send anything.
				require.Less(t, wait, patience)
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				err := zero.Ssend(ctx, content(0, 1, size), 1, 1)
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				errors.As(err, &in)
			}
			expect(t, one, 0, 1, Status{Source: 0, Tag: 1, Length: size}, 1)
			select {
			case <-in.Released:
			case <-deadline(t).Done():
				t.Fatal("the buffer does not come back")
			}
		}
	})
}

func TestWaitAny(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, _ := b.pair(t)
		requests := make([]Request, 4)
		bufs := make([][]byte, 4)
		for i := range requests {
			bufs[i] = make([]byte, 20)
			var err error
			requests[i], err = one.Irecv(bufs[i], 0, i)
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		index, _, err := WaitAny(ctx, requests)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, -1, index)
		for _, i := range []int{2, 0, 3, 1} {
			isend(t, zero, content(0, i, 20), 1, i)
			index, status, err := WaitAny(deadline(t), requests)
			require.NoError(t, err)
			require.Equal(t, i, index)
			require.Equal(t, Status{Source: 0, Tag: i, Length: 20}, status)
			require.Zero(t, requests[i])
			require.Equal(t, content(0, i, 20), bufs[i])
		}
		index, _, err = WaitAny(deadline(t), requests)
		require.NoError(t, err)
		require.Equal(t, -1, index)
	})
}

func TestPersistent(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, limit := b.pair(t)
		for _, size := range kinds(limit) {
			out, in := make([]byte, size), make([]byte, size)
			send, err := zero.SendInit(out, 1, 4)
			require.NoError(t, err)
			receive, err := one.RecvInit(in, 0, 4)
			require.NoError(t, err)
			for i := range 5 {
				copy(out, content(0, i, size))
				require.NoError(t, receive.Start())
				require.NoError(t, send.Start())
				var wrong *ArgumentError
				require.ErrorAs(t, receive.Start(), &wrong)
				_, err := send.Wait(deadline(t))
				require.NoError(t, err)
				status, err := receive.Wait(deadline(t))
				require.NoError(t, err)
				require.Equal(t, Status{Source: 0, Tag: 4, Length: size}, status)
				require.Equal(t, out, in)
			}
		}
	})
}

// A probe that waits sees what comes.
func TestProbeWaits(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, _ := b.pair(t)
		found := make(chan Status, 2)
		go func() {
			status, err := one.Probe(deadline(t), 0, 8)
			check(t, err == nil, "%v", err)
			found <- status
		}()
		go func() {
			m, err := one.Mprobe(deadline(t), AnySource, 9)
			if check(t, err == nil, "%v", err) {
				status, err := m.Recv(deadline(t), make([]byte, 5))
				check(t, err == nil, "%v", err)
				found <- status
			}
		}()
		isend(t, zero, content(0, 1, 5), 1, 8)
		isend(t, zero, content(0, 1, 5), 1, 9)
		got := []Status{<-found, <-found}
		require.ElementsMatch(t, []Status{{0, 8, 5}, {0, 9, 5}}, got)
		expect(t, one, 0, 8, Status{Source: 0, Tag: 8, Length: 5}, 1)
	})
}

// Numbers go without a copy of the program's.
func TestNumbers(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, _ := b.pair(t)
		ctx := deadline(t)
		numbers := []float64{1, -2.5, 1e300}
		require.NoError(t, Send(ctx, zero, numbers, 1, 0))
		got := make([]float64, 4)
		_, n, err := Recv(ctx, one, got, 0, 0)
		require.NoError(t, err)
		require.Equal(t, numbers, got[:n])
		require.NoError(t, zero.Send(ctx, make([]byte, 9), 1, 0))
		_, n, err = Recv(ctx, one, got, 0, 0)
		var truncated *TruncationError
		require.ErrorAs(t, err, &truncated)
		require.Equal(t, 1, n)
	})
}

func TestDupAndSplit(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		const size = 5
		worlds := b.open(t, size, Config{}, efa.Config{})
		ctx := deadline(t)
		onAll(worlds, func(rank int, c *Comm) {
			twin, err := c.Dup(ctx)
			if !check(t, err == nil, "%v", err) {
				return
			}
			// The same tags in two communicators do not meet.
			next, previous := (rank+1)%size, (rank+size-1)%size
			check(t, twin.Send(ctx, []byte("twin"), next, 1) == nil, "send")
			check(t, c.Send(ctx, []byte("world"), next, 1) == nil, "send")
			buf := make([]byte, 10)
			status, err := c.Recv(ctx, buf, previous, AnyTag)
			check(t, err == nil && string(buf[:status.Length]) == "world", "%v %q", err, buf)
			status, err = twin.Recv(ctx, buf, AnySource, AnyTag)
			check(t, err == nil && string(buf[:status.Length]) == "twin" && status.Source == previous, "%v %q", err, buf)

			// Odd and even ranks, backwards; 4 is in none.
			color := rank % 2
			if rank == 4 {
				color = Undefined
			}
			half, err := twin.Split(ctx, color, -rank)
			check(t, err == nil && (half == nil) == (rank == 4), "%v", err)
			if half == nil {
				return
			}
			check(t, half.Size() == 2 && half.Rank() == map[int]int{0: 1, 1: 1, 2: 0, 3: 0}[rank], "rank %d is %d of %d", rank, half.Rank(), half.Size())
			other := 1 - half.Rank()
			status, err = half.Sendrecv(ctx, []byte{byte(rank)}, other, 0, buf, other, 0)
			check(t, err == nil && status.Source == other && int(buf[0]) == rank^2, "%v: %v", err, status)
			check(t, half.Close() == nil, "close")
			check(t, half.Send(ctx, nil, 0, 0) != nil, "send after close")
		})
	})
}

// A context that has ended before says why, to whichever call.
func TestEndedContext(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Name != "fake" {
			return
		}
		zero, one, _ := b.pair(t)
		why := errors.New("the job is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		require.NoError(t, zero.Send(deadline(t), nil, 1, 5))
		m, err := one.Mprobe(deadline(t), 0, 5)
		require.NoError(t, err)
		q := irecv(t, one, nil, 0, 6)
		for name, err := range map[string]error{
			"Send":     one.Send(ctx, nil, 0, 0),
			"Ssend":    one.Ssend(ctx, nil, 0, 0),
			"Recv":     second(one.Recv(ctx, nil, 0, 0)),
			"Sendrecv": second(one.Sendrecv(ctx, nil, 0, 0, nil, 0, 0)),
			"Probe":    second(one.Probe(ctx, 0, 0)),
			"Mprobe":   second(one.Mprobe(ctx, 0, 0)),
			"Mrecv":    second(m.Recv(ctx, nil)),
			"Wait":     second(q.Wait(ctx)),
			"WaitAll":  WaitAll(ctx, []Request{q}),
			"Dup":      second(one.Dup(ctx)),
		} {
			require.ErrorIs(t, err, why, name)
		}
		_, _, err = WaitAny(ctx, []Request{q})
		require.ErrorIs(t, err, why)
		q.Cancel()
		_, err = q.Wait(deadline(t))
		require.ErrorIs(t, err, ErrCanceled)
		_, err = m.Recv(deadline(t), nil)
		require.NoError(t, err)
		require.Equal(t, [4]int{}, left(one))
	})
}

// A request that was waited for is none any more, and takes nothing from the one that has
// its memory then.
func TestRequestsThatAreOver(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, _ := b.pair(t)
		isOver := func(q Request) {
			t.Helper()
			status, done, err := q.Test()
			require.NoError(t, err)
			require.True(t, done)
			require.Zero(t, status)
			status, err = q.Wait(deadline(t))
			require.NoError(t, err)
			require.Zero(t, status)
			q.Cancel()
		}
		isOver(Request{})
		var old []Request
		for i := range 3 {
			q := irecv(t, one, make([]byte, 10), 0, 1)
			for _, over := range old {
				isOver(over)
			}
			sent, err := zero.Isend(content(0, i, 10), 1, 1)
			require.NoError(t, err)
			require.Equal(t, Status{Source: 0, Tag: 1, Length: 10}, finish(t, q))
			finish(t, sent)
			isOver(q)
			isOver(sent)
			old = append(old, q, sent)
			// Those that are over are left out, and the one that is not is waited for.
			all := append([]Request{irecv(t, one, make([]byte, 10), 0, 2)}, old...)
			isend(t, zero, content(0, i, 10), 1, 2)
			if i%2 == 0 {
				require.NoError(t, WaitAll(deadline(t), all))
			} else {
				index, status, err := WaitAny(deadline(t), all)
				require.NoError(t, err)
				require.Zero(t, index)
				require.Equal(t, 10, status.Length)
			}
			require.Equal(t, Request{}, all[0])
		}
		index, _, err := WaitAny(deadline(t), old)
		require.NoError(t, err)
		require.Equal(t, -1, index)
	})
}
