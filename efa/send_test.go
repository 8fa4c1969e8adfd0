package efa

import (
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// fill sends short messages until there is no room, and returns how many went.
func (c *Conn) fillUp(t *testing.T, size int) int {
	t.Helper()
	for sent := 0; ; sent++ {
		err := c.TrySend(message(1, sent, size))
		if errors.Is(err, ErrWouldBlock) {
			return sent
		}
		require.NoError(t, err)
		require.Less(t, sent, 1<<20, "a window without an end")
	}
}

// expect reads messages of one sender from number first on.
func (c *Conn) expect(t *testing.T, sender, first, count, size int) {
	t.Helper()
	buf := make([]byte, size+1)
	for i := first; i < first+count; i++ {
		n, err := c.ReadMessage(deadline(t), buf)
		require.NoError(t, err)
		require.Equal(t, message(sender, i, size), buf[:n], "message %d", i)
	}
}

// TrySend is done on return or would block; the buffer is the caller's on return.
func TestTrySend(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 16})
		var tooLong *MessageSizeError
		require.ErrorAs(t, dialed.TrySend(make([]byte, dialed.CopyLimit()+1)), &tooLong)
		require.NoError(t, dialed.TrySend(make([]byte, dialed.CopyLimit())))
		n, err := accepted.ReadMessage(deadline(t), make([]byte, dialed.CopyLimit()))
		require.NoError(t, err)
		require.Equal(t, dialed.CopyLimit(), n)

		buf := make([]byte, 100)
		sent := 0
		for ; ; sent++ {
			copy(buf, message(1, sent, 100))
			err := dialed.TrySend(buf)
			clear(buf)
			if errors.Is(err, ErrWouldBlock) {
				break
			}
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, sent, 8)
		accepted.expect(t, 1, 0, sent, 100)
		// There is room again once the grant has come.
		require.Eventually(t, func() bool {
			err := dialed.TrySend(message(1, sent, 100))
			if err != nil {
				require.ErrorIs(t, err, ErrWouldBlock)
			}
			return err == nil
		}, patience, 1e6)
		accepted.expect(t, 1, sent, 1, 100)
		closeBoth(t, dialed, accepted)
		require.ErrorIs(t, dialed.TrySend(buf), net.ErrClosed)
	})
}

// TrySend copies what is longer than both sides' eager limit too.
func TestTrySendWithoutEager(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{EagerLimit: -1})
		dialed, accepted := join(t, from, to)
		buf := message(1, 0, 3000)
		require.NoError(t, dialed.TrySend(buf))
		clear(buf)
		accepted.expect(t, 1, 0, 1, 3000)
		closeBoth(t, dialed, accepted)
	})
}

// Send is done, or fails, or is a request.
func TestSend(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 8, MaxPending: 5, MaxMessage: 1 << 20})
		q, err := dialed.Send(make([]byte, dialed.MaxMessage()+1))
		var tooLong *MessageSizeError
		require.ErrorAs(t, err, &tooLong)
		require.Nil(t, q)

		sent, inProgress := 0, []*Request(nil)
		for ; len(inProgress) == 0; sent++ {
			q, err := dialed.Send(message(1, sent, 50))
			require.NoError(t, err)
			if q != nil {
				inProgress = append(inProgress, q)
			}
		}
		require.False(t, inProgress[0].Done())
		for ; ; sent++ {
			q, err := dialed.Send(message(1, sent, 50))
			if errors.Is(err, ErrWouldBlock) {
				var full *PendingError
				require.ErrorAs(t, err, &full)
				require.Equal(t, 5, full.MessageLimit)
				break
			}
			require.NoError(t, err)
			inProgress = append(inProgress, q)
		}
		require.Len(t, inProgress, 5)
		accepted.expect(t, 1, 0, sent, 50)
		for _, q := range inProgress {
			require.NoError(t, q.Wait(deadline(t)))
		}
		// A long one is in progress until the device is done with it.
		long := message(1, sent, 100_000)
		q, err = dialed.Send(long)
		require.NoError(t, err)
		accepted.expect(t, 1, sent, 1, 100_000)
		if q != nil {
			require.NoError(t, q.Wait(deadline(t)))
		}
		closeBoth(t, dialed, accepted)
		q, err = dialed.Send(long)
		require.ErrorIs(t, err, net.ErrClosed)
		require.Nil(t, q)
	})
}

// What is in progress when a connection ends, ends with it.
func TestRequestsEndWithTheConnection(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 4})
		dialed.fillUp(t, 10)
		q, err := dialed.Send([]byte("waits"))
		require.NoError(t, err)
		require.NotNil(t, q)
		require.NoError(t, dialed.CloseNow())
		require.True(t, q.Done())
		require.ErrorIs(t, q.Wait(deadline(t)), net.ErrClosed)
		require.NoError(t, accepted.Close())
	})
}

// The bytes that wait are bounded as well.
func TestPendingBytes(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 4, MaxPendingBytes: 1000})
		sent := dialed.fillUp(t, 10)
		require.NoError(t, dialed.WriteMessageAsync(message(2, 0, 2000), nil), "one may always wait")
		err := dialed.WriteMessageAsync(message(2, 1, 1), nil)
		var full *PendingError
		require.ErrorAs(t, err, &full)
		require.ErrorIs(t, err, ErrWouldBlock)
		require.Equal(t, PendingError{Messages: 1, Bytes: 2000, MessageLimit: 4096, ByteLimit: 1000}, *full)
		accepted.expect(t, 1, 0, sent, 10)
		accepted.expect(t, 2, 0, 1, 2000)
		closeBoth(t, dialed, accepted)
	})
}

// A completion over several fragments is called once, after the last, with the
// first error.
func TestCompletion(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		results := make(chan error, 10)
		sizes := []int{0, 10, 5000, 70_000, 1}
		done := NewCompletion(len(sizes), func(err error) { results <- err })
		for i, size := range sizes {
			require.Empty(t, results, "called before its last fragment")
			require.NoError(t, dialed.SendZeroCopy(message(1, i, size), done))
		}
		var none *CompletionError
		require.ErrorAs(t, dialed.SendZeroCopy([]byte("one more"), done), &none)
		for i, size := range sizes {
			accepted.expect(t, 1, i, 1, size)
		}
		require.NoError(t, <-results)

		// An error in the middle.
		failure := errors.New("fragment")
		done = NewCompletion(3, func(err error) { results <- err })
		require.NoError(t, dialed.SendZeroCopy(message(2, 0, 8), done))
		require.NoError(t, done.Skip(failure))
		require.NoError(t, dialed.SendZeroCopy(message(2, 1, 9000), done))
		accepted.expect(t, 2, 0, 1, 8)
		accepted.expect(t, 2, 1, 1, 9000)
		require.ErrorIs(t, <-results, failure)
		require.ErrorAs(t, done.Skip(nil), &none)

		// One of several connections ends.
		other, otherEnd := b.connect(t, Config{})
		other.fillUp(t, 10)
		done = NewCompletion(3, func(err error) { results <- err })
		require.NoError(t, dialed.SendZeroCopy(message(3, 0, 8), done))
		require.NoError(t, other.SendZeroCopy(make([]byte, 10), done), "it waits for credit")
		require.NoError(t, otherEnd.CloseNow())
		accepted.expect(t, 3, 0, 1, 8)
		require.Empty(t, results, "called before its last fragment")
		require.NoError(t, dialed.SendZeroCopy(message(3, 1, 9000), done))
		accepted.expect(t, 3, 1, 1, 9000)
		var ended *ConnError
		require.ErrorAs(t, <-results, &ended)
		require.Equal(t, other.RemoteAddr(), ended.Peer)
		_ = other.Close()

		// All waiting when the connection ends.
		dialed.fillUp(t, 10)
		done = NewCompletion(3, func(err error) { results <- err })
		for range 3 {
			require.NoError(t, dialed.SendZeroCopy(make([]byte, 10), done))
		}
		require.NoError(t, dialed.CloseNow())
		require.ErrorIs(t, <-results, net.ErrClosed)
		require.NoError(t, accepted.CloseNow())
		require.Empty(t, results)
	})
}

// A callback that waits for room is called when it is there; what it sends is
// overtaken by nothing, and a message that came between the refusal and the
// registration does not make it sleep for ever.
func TestOnReady(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 8})
		require.ErrorIs(t, dialed.OnReady(func(func([]byte) error) Pending { return PendingDone }), ErrReady)
		sent := dialed.fillUp(t, 10)

		const more = 50
		next, finished := sent, make(chan struct{})
		var inside sync.Mutex
		require.NoError(t, dialed.OnReady(func(send func([]byte) error) Pending {
			require.True(t, inside.TryLock(), "two callbacks at a time")
			defer inside.Unlock()
			// Others do not overtake.
			require.ErrorIs(t, dialed.TrySend([]byte("overtaking")), ErrWouldBlock)
			for ; next < sent+more; next++ {
				if err := send(message(1, next, 10)); err != nil {
					require.ErrorIs(t, err, ErrWouldBlock)
					if next%2 == 0 {
						return PendingStop
					}
					return PendingAgain
				}
				if next%3 == 0 {
					next++
					return PendingAgain
				}
			}
			close(finished)
			return PendingDone
		}))
		// This one waits behind the callback.
		require.NoError(t, dialed.WriteMessageAsync(message(1, sent+more, 10), nil))
		accepted.expect(t, 1, 0, sent+more+1, 10)
		<-finished
		closeBoth(t, dialed, accepted)
	})
}

// A callback that waits for room hears of the end of the connection, once.
func TestOnReadyHearsOfTheEnd(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 4})
		dialed.fillUp(t, 10)
		heard := make(chan error, 10)
		for range 2 {
			require.NoError(t, dialed.OnReady(func(send func([]byte) error) Pending {
				heard <- send([]byte("late"))
				return PendingStop
			}))
		}
		require.NoError(t, dialed.CloseNow())
		for range 2 {
			require.ErrorIs(t, <-heard, net.ErrClosed)
		}
		require.NoError(t, accepted.Close())
		require.Empty(t, heard)
	})
}

// Several goroutines send by TrySend and OnReady, while the reader takes its time:
// no wake-up is lost.
func TestOnReadyLosesNoWakeUp(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 4})
		const senders, each = 4, 200
		var group sync.WaitGroup
		for s := range senders {
			group.Go(func() {
				next := 0
				for next < each {
					err := dialed.TrySend(append([]byte{byte(s)}, message(s, next, 7)...))
					if err == nil {
						next++
						continue
					}
					woken := make(chan struct{})
					if err := dialed.OnReady(func(func([]byte) error) Pending { close(woken); return PendingDone }); err == nil {
						<-woken
					}
				}
			})
		}
		var counts [senders]int
		buf := make([]byte, 20)
		for range senders * each {
			n, err := accepted.ReadMessage(deadline(t), buf)
			require.NoError(t, err)
			s := buf[0]
			require.Equal(t, message(int(s), counts[s], 7), buf[1:n])
			counts[s]++
		}
		group.Wait()
		closeBoth(t, dialed, accepted)
	})
}
