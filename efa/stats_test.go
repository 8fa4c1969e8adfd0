package efa

import (
	"context"
	"io"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// Every kind of message is counted once on either side, exactly, on any device.
func TestStatsOfMessages(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{EagerLimit: 1000, WindowBytes: 200_000})
		require.Zero(t, dialed.Stats())
		ctx := deadline(t)
		eager, long := []int{0, 1, 1000, 64, 0}, []int{1001, 70_000, 90_000}
		var bytes uint64
		i := 0
		for _, size := range append(append([]int{}, eager...), long...) {
			require.Eventually(t, func() bool { return accepted.Stats().Received == uint64(i) }, patience, time.Millisecond)
			// Somebody waits for every other one.
			read := make(chan error, 1)
			if i%2 == 1 {
				go func() {
					_, err := accepted.ReadMessage(ctx, make([]byte, size))
					read <- err
				}()
				eventually(t, accepted.reactor, func() bool { return len(accepted.readers) == 1 })
			}
			require.NoError(t, dialed.WriteMessage(ctx, message(1, i, size)))
			if i%2 == 0 {
				eventually(t, accepted.reactor, func() bool { return accepted.received == uint64(i)+1 })
				accepted.expect(t, 1, i, 1, size)
			} else {
				require.NoError(t, <-read)
			}
			bytes += uint64(size)
			i++
		}
		require.NoError(t, dialed.TrySend(message(1, i, 1000)))
		accepted.expect(t, 1, i, 1, 1000)
		require.NoError(t, dialed.Flush(ctx, FlushRemote))

		// Grants come with every half of a window, and may be on their way.
		require.Eventually(t, func() bool { return dialed.Stats().GrantsReceived == accepted.Stats().GrantsSent }, patience, time.Millisecond)
		out, in := dialed.Stats(), accepted.Stats()
		count := uint64(len(eager) + len(long) + 1)
		require.Equal(t, count, out.Sent)
		require.Equal(t, bytes+1000, out.SentBytes)
		require.EqualValues(t, len(eager)+1, out.Eager)
		require.EqualValues(t, len(eager)+1, out.Bounced)
		require.EqualValues(t, len(long), out.ZeroCopy)
		require.EqualValues(t, 1, out.Flushes)
		require.Zero(t, out.Waited)
		var pieces uint64
		for _, size := range long {
			if n := dialed.payloads(size); n > 1 {
				pieces += uint64(n)
			}
		}
		require.Equal(t, pieces, out.Pieces, "over tcp;ofi_rxm, which copies what is short")
		require.Zero(t, out.Held)
		require.Zero(t, out.Groups, "nothing was written while another one waited")
		require.Zero(t, out.Received)
		require.Zero(t, out.Waiting)
		require.Zero(t, out.Errors)
		require.NoError(t, out.Err)

		require.Equal(t, count, in.Received)
		require.Equal(t, bytes+1000, in.ReceivedBytes)
		require.Equal(t, count, in.Read)
		require.Zero(t, in.Unread)
		require.GreaterOrEqual(t, in.Direct, uint64(4), "those that somebody waited for")
		require.GreaterOrEqual(t, in.Parked, uint64(4), "those that nobody waited for")
		require.Equal(t, count, in.Direct+in.Parked)
		require.Zero(t, in.Sent)
		if b.Faults.Refuse == 0 && !b.Faults.RefuseEveryOther && b.Provider == "" {
			require.Zero(t, out.Refused)
		}
		if b.Faults.Reorder == 0 && b.Provider == "" {
			require.Zero(t, in.LateArrivals)
		}

		closeBoth(t, dialed, accepted)
		// They stay, and are those of the reactor, which had no other connection.
		for c, before := range map[*Conn]ConnStats{dialed: out, accepted: in} {
			require.Eventually(t, func() bool { return c.reactor.Stats().Connections == 0 }, patience, time.Millisecond)
			after := c.Stats()
			require.Equal(t, before.Sent, after.Sent)
			require.Equal(t, before.ReceivedBytes, after.ReceivedBytes)
			require.NoError(t, after.Err)
			all := c.reactor.Stats()
			require.EqualValues(t, 1, all.Opened)
			require.EqualValues(t, 1, all.InOrder)
			require.Zero(t, all.Ended)
			require.GreaterOrEqual(t, all.Refused, after.Refused)
			all.Refused = after.Refused // its own receives
			require.Equal(t, after.MessageStats, all.MessageStats)
			require.NoError(t, c.reactor.Close())
			require.Equal(t, after, c.Stats())
			require.Equal(t, after.Sent, c.reactor.Stats().Sent)
		}
	})
}

// The totals of a reactor are the sum over its connections, whether they have
// ended or not, and what a reader does after the end is in it.
func TestStatsAddUp(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		var dialed, accepted []*Conn
		for i := range 4 {
			d, a := join(t, from, to)
			dialed, accepted = append(dialed, d), append(accepted, a)
			for k := range i + 1 {
				require.NoError(t, d.WriteMessage(deadline(t), message(i, k, 100*k)))
			}
		}
		// One has ended, and its messages are read later.
		closed := make(chan error, 1)
		go func() { closed <- dialed[3].Close() }()
		_, err := accepted[3].MessageSize(deadline(t))
		require.NoError(t, err)
		require.NoError(t, <-closed)
		for k := range 4 {
			accepted[3].expect(t, 3, k, 1, 100*k)
		}
		_, err = accepted[3].ReadMessage(deadline(t), nil)
		require.Equal(t, io.EOF, err)
		require.NoError(t, accepted[3].Close())
		_, err = accepted[3].ReadMessage(deadline(t), nil)
		require.ErrorIs(t, err, net.ErrClosed)
		for i := range 3 {
			accepted[i].expect(t, i, 0, 1, 0)
		}
		var sum MessageStats
		for _, a := range accepted {
			s := a.Stats()
			sum.add(&s.MessageStats)
		}
		require.EqualValues(t, 10, sum.Received)
		require.EqualValues(t, 3+4, sum.Read)
		require.EqualValues(t, 1, sum.Errors.Closed, "the end of the messages is no error")
		all := to.Stats()
		require.GreaterOrEqual(t, all.Refused, sum.Refused)
		sum.Refused = all.Refused
		require.Equal(t, sum, all.MessageStats)
		require.EqualValues(t, 4, all.Opened)
		require.EqualValues(t, 4, all.Accepting.Succeeded)
		require.EqualValues(t, 4, from.Stats().Dialing.Succeeded)
		for i := range 3 {
			require.NoError(t, dialed[i].CloseNow())
			require.NoError(t, accepted[i].CloseNow())
		}
		// Either side may have been first.
		ended := to.Stats().Ended
		require.EqualValues(t, 3, ended.Closed+ended.PeerLost)
		require.EqualValues(t, 1, to.Stats().InOrder)
	})
}

// What is written while an earlier one waits is in a group, on both sides.
func TestStatsOfGroups(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		r := dialed.reactor
		// Nothing is posted while the role is held.
		r.do(func() {
			for i := range 10 {
				r.enqueue(r.newWrite(dialed, message(1, i, 20)))
			}
			// This one cannot join, and the next one has nothing to join.
			r.enqueue(r.newWrite(dialed, message(1, 10, 5000)))
			r.enqueue(r.newWrite(dialed, message(1, 11, 20)))
		})
		accepted.expect(t, 1, 0, 10, 20)
		accepted.expect(t, 1, 10, 1, 5000)
		accepted.expect(t, 1, 11, 1, 20)
		out, in := dialed.Stats(), accepted.Stats()
		require.EqualValues(t, 1, out.Groups)
		require.EqualValues(t, 10, out.Grouped)
		require.EqualValues(t, 1, in.GroupsReceived)
		require.EqualValues(t, 12, out.Sent)
		require.EqualValues(t, 11, out.Eager)
		require.EqualValues(t, 12, in.Received)
		closeBoth(t, dialed, accepted)
	})
}

// A narrow device has payloads in pieces.
func TestStatsOfPieces(t *testing.T) {
	for _, s := range narrow {
		t.Run(s.Name, func(t *testing.T) {
			dialed, accepted := newBed(t, s).connect(t, Config{EagerLimit: 500})
			sizes := []int{500, 501, 1000, 1001, 10_000}
			go func() {
				for i, size := range sizes {
					if err := dialed.WriteMessage(context.Background(), message(1, i, size)); err != nil {
						panic(err)
					}
				}
			}()
			for i, size := range sizes {
				accepted.expect(t, 1, i, 1, size)
			}
			require.NoError(t, dialed.Flush(deadline(t), FlushLocal))
			require.EqualValues(t, 2+10, dialed.Stats().Pieces)
			require.EqualValues(t, 2+10, accepted.Stats().PiecesReceived)
			require.EqualValues(t, 4, dialed.Stats().ZeroCopy)
			closeBoth(t, dialed, accepted)
		})
	}
}

// Writes that wait for the reader, and calls that will not wait.
func TestStatsOfCredit(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 8, WindowBytes: 20_000})
		ctx := deadline(t)
		for i := range 8 {
			require.NoError(t, dialed.WriteMessage(ctx, message(1, i, 10)))
		}
		for range 3 {
			require.ErrorIs(t, dialed.TrySend([]byte("no")), ErrWouldBlock)
		}
		var requests []*Request
		for i := range 3 {
			q, err := dialed.Send(message(1, 8+i, 10))
			require.NoError(t, err)
			requests = append(requests, q)
		}
		short, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- dialed.WriteMessage(short, message(1, 0, 10)) }()
		eventually(t, dialed.reactor, func() bool { return dialed.waiting.length == 4 })
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		s := dialed.Stats()
		require.EqualValues(t, 8, s.Sent)
		require.EqualValues(t, 4, s.Waited)
		require.EqualValues(t, 3, s.Waiting)
		require.EqualValues(t, 30, s.WaitingBytes)
		require.Equal(t, ErrorStats{WouldBlock: 3, Canceled: 1}, s.Errors)
		require.Zero(t, s.GrantsReceived)
		eventually(t, accepted.reactor, func() bool { return accepted.received == 8 })
		require.EqualValues(t, 8, accepted.Stats().Unread)

		accepted.expect(t, 1, 0, 11, 10)
		for _, q := range requests {
			require.NoError(t, q.Wait(ctx))
		}
		// Half a window at a time.
		require.EqualValues(t, 2, accepted.Stats().GrantsSent)
		require.Eventually(t, func() bool { return dialed.Stats().GrantsReceived == 2 }, patience, time.Millisecond)

		// A message longer than the window waits until it is read.
		q, err := dialed.Send(message(1, 11, 30_000))
		require.NoError(t, err)
		require.EqualValues(t, 1, dialed.Stats().Held)
		accepted.expect(t, 1, 11, 1, 30_000)
		require.NoError(t, q.Wait(ctx))
		require.EqualValues(t, 12, dialed.Stats().Sent)
		closeBoth(t, dialed, accepted)
	})
}

// Refused posts are counted, as many as the device refused.
func TestStatsOfRefusals(t *testing.T) {
	for _, s := range settings[:4] {
		t.Run(s.Name, func(t *testing.T) {
			b := newBed(t, s)
			from, to := b.open(t, Config{}), b.open(t, Config{})
			dialed, accepted := join(t, from, to)
			for i := range 50 {
				require.NoError(t, dialed.WriteMessage(deadline(t), message(1, i, 10)))
				accepted.expect(t, 1, i, 1, 10)
			}
			closeBoth(t, dialed, accepted)
			require.NoError(t, from.Close())
			require.NoError(t, to.Close())
			require.Equal(t, b.Network.Stats().Refused, from.Stats().Refused+to.Stats().Refused)
			if s.Faults.Refuse > 0 || s.Faults.RefuseEveryOther {
				require.Positive(t, b.Network.Stats().Refused)
			}
			if s.Faults.Refuse > 0 {
				require.Positive(t, dialed.Stats().Refused)
			}
		})
	}
}

// Completions that come in another order are late; so are lengths.
func TestStatsOfOrder(t *testing.T) {
	n, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{MaxInject: -1})
	a, b := join(t, openOn(t, d1, Config{}), openOn(t, d2, Config{}))
	for i := range 4 {
		// So that they are messages of their own.
		n.HoldCompletions(d1)
		require.NoError(t, a.WriteMessage(deadline(t), message(1, i, 10)))
		require.NoError(t, n.AwaitHeld(deadline(t), d1, i+1))
	}
	n.ReleaseCompletions(d1, []int{2, 0, 3, 1})
	require.NoError(t, a.Flush(deadline(t), FlushLocal))
	require.EqualValues(t, 2, a.Stats().LateCompletions)
	n.StopHolding(d1)
	b.expect(t, 1, 0, 4, 10)
	require.Zero(t, b.Stats().LateArrivals)

	n.HoldCompletions(d2)
	for i := range 4 {
		require.NoError(t, a.WriteMessage(deadline(t), message(1, 4+i, 10)))
		require.NoError(t, n.AwaitHeld(deadline(t), d2, i+1))
	}
	n.ReleaseCompletions(d2, []int{3, 1, 2, 0})
	b.expect(t, 1, 4, 4, 10)
	require.EqualValues(t, 3, b.Stats().LateArrivals)
	n.StopHolding(d2)
	closeBoth(t, a, b)
}

// No field is forgotten in the totals, or in the log.
func TestStatsAreComplete(t *testing.T) {
	var s MessageStats
	names := map[string]bool{}
	for i, c := range s.counts() {
		require.Zero(t, *c.value)
		*c.value = uint64(i + 1)
		require.False(t, names[c.name], c.name)
		names[c.name] = true
	}
	leaves := 0
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Struct {
				walk(f)
			} else {
				require.NotZero(t, f.Uint(), v.Type().Field(i).Name)
				leaves++
			}
		}
	}
	walk(reflect.ValueOf(s))
	require.Len(t, names, leaves)
	twice := s
	twice.add(&s)
	for i, c := range twice.counts() {
		require.EqualValues(t, 2*(i+1), *c.value, c.name)
	}
	require.Len(t, s.LogValue().Group(), leaves)
	require.Empty(t, MessageStats{}.LogValue().Group())
}
