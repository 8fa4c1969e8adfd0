package comm

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// What a cancel, or the end of a context, meets at each stage of a message:
//
//	the sender waits for room at the receiver    cancelBeforeItBegins
//	it is there, and there is no receive         cancelUnmatched, TestSendGivesUp
//	it was matched, and its data waits for room  cancelMatched
//	the receiver reads it                        cancelRead
//	the receiver has asked for it                cancelAskedFor
//	a probe has claimed it                       cancelClaimed
//
// What Close of either side meets there is in closing_test.go.
func TestCancel(t *testing.T) {
	runCases(t, []originCase{
		{"before it begins", cancelBeforeItBegins},
		{"unmatched", cancelUnmatched},
		{"matched", cancelMatched},
		{"read", cancelRead},
		{"asked for", cancelAskedFor},
		{"claimed", cancelClaimed},
	})
}

// narrow is how many messages of another rank there is room for in these tests, beside
// those that the provider matches.
const narrow = 4

// narrowly lends a job of two ranks that have little room for each other's messages.
func (b *bed) narrowly(t *testing.T, config Config) (zero, one *Comm, limit int) {
	t.Helper()
	config.MaxUnexpected = 100_000
	zero, one = b.lend(t, config, efa.Config{WindowMessages: narrow})
	limit, err := zero.EagerLimit(1)
	require.NoError(t, err)
	return zero, one, limit
}

// deafen has a rank take nothing more of what another sends it, until hear is called. The
// other's room there is used up.
func deafen(t *testing.T, c, from *Comm) (hear func()) {
	t.Helper()
	e := c.engine
	// As if messages that nobody receives had all the memory for them.
	e.do(func(efa.Progress) {
		e.arrivals.used += e.arrivals.limit
		e.arrivals.full = true
	})
	// There is no memory for these, and they are in front of all else.
	for range 2 * narrow {
		say(t, from, c.Rank(), headOf(header{kind: kindNotice, context: 1 << 20}), nil)
	}
	inRole(t, c, func() bool { return e.peers[from.Rank()].held })
	return func() {
		e.do(func(p efa.Progress) {
			e.arrivals.used -= e.arrivals.limit
			e.letGo(p)
		})
	}
}

// inRole waits until something is so in the progress role.
func inRole(t *testing.T, c *Comm, so func() bool) {
	t.Helper()
	require.Eventually(t, func() (is bool) {
		c.engine.do(func(efa.Progress) { is = so() })
		return is
	}, patience, time.Millisecond)
}

// soon returns what f does, which ends soon.
func soon(t *testing.T, f func() error) (wait func() error) {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- f() }()
	return func() error {
		t.Helper()
		select {
		case err := <-result:
			return err
		case <-deadline(t).Done():
			require.Fail(t, "it does not end")
			return nil
		}
	}
}

// requireReleased waits until the device is done with the buffer of a call that was given
// up.
func requireReleased(t *testing.T, err error) {
	t.Helper()
	var in *efa.InFlightError
	require.ErrorAs(t, err, &in)
	require.ErrorIs(t, err, context.Canceled)
	select {
	case <-in.Released:
	case <-deadline(t).Done():
		require.Fail(t, "the buffer does not come back")
	}
}

// requireReceived waits for a receive of message i of rank 0, or of its beginning.
func requireReceived(t *testing.T, q Request, buf []byte, i, size int) {
	t.Helper()
	status, err := q.Wait(deadline(t))
	var truncated *TruncationError
	if len(buf) < size {
		require.ErrorAs(t, err, &truncated)
	} else {
		require.NoError(t, err)
	}
	require.Equal(t, size, status.Length)
	same(t, content(0, i, size)[:min(size, len(buf))], buf[:min(size, len(buf))])
}

// A send that waits for room has not begun: it can be canceled and given up, whatever its
// length, and nobody hears of it.
func cancelBeforeItBegins(t *testing.T, b *bed) {
	zero, one, limit := b.narrowly(t, Config{})
	for _, size := range []int{10, limit + 1000} {
		hear := deafen(t, one, zero)
		for i := range 2 * narrow {
			// In either mode, more than there is room for.
			isend(t, zero, content(0, i, limit), 1, 1)
		}
		for _, begin := range []func([]byte, int, int) (Request, error){zero.Isend, zero.Issend} {
			q, err := begin(content(0, 77, size), 1, 7)
			require.NoError(t, err)
			q.Cancel()
			_, err = q.Wait(deadline(t))
			require.ErrorIs(t, err, ErrCanceled)
		}
		for _, send := range []func(context.Context, []byte, int, int) error{zero.Send, zero.Ssend} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			err := send(ctx, content(0, 77, size), 1, 7)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			var in *efa.InFlightError
			require.False(t, errors.As(err, &in), "%v", err)
		}
		require.Empty(t, zero.engine.sends.live())
		hear()
		for i := range 2 * narrow {
			expect(t, one, 0, 1, Status{Source: 0, Tag: 1, Length: limit}, i)
		}
		arrive(t, zero, one)
		_, found, err := one.Iprobe(0, 7)
		require.NoError(t, err)
		require.False(t, found)
	}
}

// A synchronous or a long send that the receiver has heard of goes on, canceled or not.
func cancelUnmatched(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for _, to := range []*Comm{zero, one} {
		for _, size := range []int{10, limit + 1000} {
			q, err := zero.Issend(content(0, size, size), to.Rank(), 1)
			require.NoError(t, err)
			arrive(t, zero, to)
			q.Cancel()
			_, done, err := q.Test()
			require.NoError(t, err)
			require.False(t, done)
			expect(t, to, 0, 1, Status{Source: 0, Tag: 1, Length: size}, size)
			finish(t, q)
		}
	}
}

// A send whose receive was found cannot be canceled, nor given up, although its data
// waits for room: the receive gets it.
func cancelMatched(t *testing.T, b *bed) {
	const size = 100_000
	zero, one, _ := b.narrowly(t, Config{NoRemoteReads: true})
	announced := func() bool { return len(zero.engine.sends.live()) == 1 }
	matched := func() bool { return len(zero.engine.sends.live()) == 0 }
	for _, room := range []int{size, 10} {
		q, err := zero.Isend(content(0, 1, size), 1, 0)
		require.NoError(t, err)
		arrive(t, zero, one)
		hear := deafen(t, one, zero)
		buf := make([]byte, room)
		receive := irecv(t, one, buf, 0, 0)
		inRole(t, zero, matched)
		q.Cancel()
		hear()
		finish(t, q)
		requireReceived(t, receive, buf, 1, size)

		ctx, cancel := context.WithCancel(t.Context())
		sent := soon(t, func() error { return zero.Send(ctx, content(0, 2, size), 1, 0) })
		inRole(t, zero, announced)
		arrive(t, zero, one)
		hear = deafen(t, one, zero)
		receive = irecv(t, one, buf, 0, 0)
		inRole(t, zero, matched)
		cancel()
		err = sent()
		hear()
		requireReleased(t, err)
		requireReceived(t, receive, buf, 2, size)
	}
}

// A message that is being read cannot be canceled, on either side.
func cancelRead(t *testing.T, b *bed) {
	zero, one, _ := b.two(t)
	if !one.engine.readsRemotely() {
		return
	}
	const size = 3 << 20
	for i := range 2 {
		out, err := zero.Isend(long(0, i, size), 1, i)
		require.NoError(t, err)
		_, err = one.Probe(deadline(t), 0, i)
		require.NoError(t, err)
		buf := make([]byte, size)
		op, err := one.newReceive(buf, 0, i)
		require.NoError(t, err)
		one.engine.do(func(p efa.Progress) {
			// No turn is taken in between.
			op.work = workNone
			op.receive(p)
			check(t, op.reading > 0, "it is not read")
			op.cancel(p, ErrCanceled)
			check(t, !op.done.Load(), "it is canceled: %v", op.err)
		})
		out.Cancel()
		status, err := op.giveUp(context.Canceled)
		if err != nil {
			requireReleased(t, err)
		} else {
			// It was fast.
			require.Equal(t, Status{Source: 0, Tag: i, Length: size}, status)
		}
		same(t, long(0, i, size), buf)
		finish(t, out)
	}
}

// A message that the receiver has asked its sender for cannot be canceled there.
func cancelAskedFor(t *testing.T, b *bed) {
	const size = 100_000
	zero, one, _ := b.narrowly(t, Config{NoRemoteReads: true})
	asked := func() bool { return len(one.engine.receives.live()) == 1 }
	for _, room := range []int{size, 10} {
		send := func(i int) (q Request, hear func()) {
			q, err := zero.Isend(content(0, i, size), 1, 0)
			require.NoError(t, err)
			arrive(t, zero, one)
			return q, deafen(t, zero, one)
		}
		buf := make([]byte, room)
		out, hear := send(1)
		in := irecv(t, one, buf, AnySource, 0)
		inRole(t, one, asked)
		in.Cancel()
		hear()
		requireReceived(t, in, buf, 1, size)
		finish(t, out)

		out, hear = send(2)
		ctx, cancel := context.WithCancel(t.Context())
		received := soon(t, func() error {
			_, err := one.Recv(ctx, buf, 0, AnyTag)
			return err
		})
		inRole(t, one, asked)
		cancel()
		err := received()
		hear()
		requireReleased(t, err)
		same(t, content(0, 2, size)[:room], buf)
		finish(t, out)
		require.Equal(t, [4]int{}, left(one))
	}
}

// A context that has ended leaves a message that was claimed to a later receive.
func cancelClaimed(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, to := range []*Comm{zero, one} {
		for _, size := range []int{10, limit + 1000} {
			q, err := zero.Issend(content(0, 1, size), to.Rank(), 1)
			require.NoError(t, err)
			m, err := to.Mprobe(deadline(t), 0, 1)
			require.NoError(t, err)
			buf := make([]byte, size)
			_, err = m.Recv(ended, buf)
			require.ErrorIs(t, err, context.Canceled)
			status, err := m.Recv(deadline(t), buf)
			require.NoError(t, err)
			require.Equal(t, Status{Source: 0, Tag: 1, Length: size}, status)
			require.Equal(t, content(0, 1, size), buf)
			finish(t, q)
			_, err = m.Recv(deadline(t), buf)
			var twice *ArgumentError
			require.ErrorAs(t, err, &twice)
			bytes, _, _ := used(to)
			require.Zero(t, bytes)
		}
	}
}

// ending is a context that has not ended yet when it is first asked.
type ending struct {
	context.Context
	asked bool
}

func (e *ending) Err() error {
	if !e.asked {
		e.asked = true
		return nil
	}
	return e.Context.Err()
}

// A context that ends while a receive of what was claimed begins does not lose the message.
func TestContextEndsWithClaim(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, limit := b.pair(t)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, size := range []int{10, limit + 1000} {
			q, err := zero.Issend(content(0, 1, size), 1, 1)
			require.NoError(t, err)
			m, err := one.Mprobe(deadline(t), 0, 1)
			require.NoError(t, err)
			buf := make([]byte, size)
			if _, err = m.Recv(&ending{Context: ended}, buf); err != nil {
				requireReleased(t, err)
			}
			require.Equal(t, content(0, 1, size), buf)
			finish(t, q)
			bytes, _, _ := used(one)
			require.Zero(t, bytes)
		}
	})
}
