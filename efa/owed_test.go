package efa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// unattended opens a connection whose writing side is driven by whom it owes
// something to, or not at all: the background does not look by itself.
func unattended(t *testing.T, b *bed) (dialed, accepted *Conn) {
	t.Helper()
	return join(t, b.open(t, Config{WindowMessages: 8, idleCheck: time.Hour}), b.open(t, Config{WindowMessages: 8}))
}

// No call waits for any of these, and all come about.
func TestOwedWithoutACall(t *testing.T) {
	const count = 200
	ways := []struct {
		name string
		// send sends count messages of 100 bytes by sender 1.
		send func(t *testing.T, c *Conn)
	}{
		{"OnReady", func(t *testing.T, c *Conn) {
			next, ended := 0, make(chan error, 1)
			require.NoError(t, fillAndThen(c, &next, func(send func([]byte) error) Pending {
				for ; next < count; next++ {
					if err := send(message(1, next, 100)); errors.Is(err, ErrWouldBlock) {
						return PendingAgain
					} else if err != nil {
						ended <- err
						return PendingDone
					}
				}
				ended <- nil
				return PendingDone
			}))
			require.NoError(t, <-ended)
		}},
		{"Send", func(t *testing.T, c *Conn) {
			for i := range count {
				q, err := c.Send(message(1, i, 100))
				require.NoError(t, err)
				if q != nil {
					require.Eventually(t, q.Done, patience, 100*time.Microsecond)
					require.NoError(t, q.Wait(deadline(t)))
				}
			}
		}},
		{"WriteMessageAsync", func(t *testing.T, c *Conn) {
			ended := make(chan error, count)
			for i := range count {
				require.NoError(t, c.WriteMessageAsync(message(1, i, 100), func(err error) { ended <- err }))
			}
			for range count {
				require.NoError(t, <-ended)
			}
		}},
		{"SendZeroCopy", func(t *testing.T, c *Conn) {
			ended := make(chan error, 1)
			done := NewCompletion(count, func(err error) { ended <- err })
			for i := range count {
				require.NoError(t, c.SendZeroCopy(message(1, i, 100), done))
			}
			require.NoError(t, <-ended)
		}},
		{"FlushAsync", func(t *testing.T, c *Conn) {
			ended := make(chan error, 1)
			for i := range count {
				require.NoError(t, c.WriteMessage(deadline(t), message(1, i, 100)))
				require.NoError(t, c.FlushAsync(FlushRemote, NewCompletion(1, func(err error) { ended <- err })))
				require.NoError(t, <-ended)
			}
		}},
	}
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := unattended(t, b)
		for _, way := range ways {
			t.Run(way.name, func(t *testing.T) {
				read := make(chan error, 1)
				go func() { read <- readInOrder(accepted, count) }()
				way.send(t, dialed)
				require.NoError(t, <-read)
				// The last may have been read before its send is known to have ended.
				require.Eventually(t, func() bool { return dialed.reactor.owed.count.Load() == 0 }, patience, 100*time.Microsecond)
			})
		}
		closeBoth(t, dialed, accepted)
	})
}

// readInOrder reads messages of 100 bytes by sender 1.
func readInOrder(c *Conn, count int) error {
	buf := make([]byte, 100)
	for i := range count {
		n, err := c.ReadMessage(context.Background(), buf)
		if err != nil {
			return err
		}
		if !bytes.Equal(buf[:n], message(1, i, 100)) {
			return fmt.Errorf("message %d is another", i)
		}
	}
	return nil
}

// fillAndThen sends until there is no room, and has f go on when there is.
func fillAndThen(c *Conn, next *int, f func(send func([]byte) error) Pending) error {
	for {
		err := c.TrySend(message(1, *next, 100))
		switch {
		case err == nil:
			*next++
		case !errors.Is(err, ErrWouldBlock):
			return err
		default:
			if err := c.OnReady(f); !errors.Is(err, ErrReady) {
				return err
			}
		}
	}
}

// While nothing happens, what is owed costs no more than a look after each wait.
func TestIdleWhileOwed(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := unattended(t, b)
		sent := dialed.fillUp(t, 10)
		called := make(chan struct{})
		require.NoError(t, dialed.OnReady(func(func([]byte) error) Pending {
			close(called)
			return PendingDone
		}))
		r := dialed.reactor
		var looks uint64
		waits := func(more uint64) Stats {
			first := r.Stats()
			now := first
			require.Eventually(t, func() bool {
				r.device.Wake()
				now = r.Stats()
				looks++
				return now.Waits >= first.Waits+more
			}, patience, time.Millisecond)
			return now
		}
		// The search for what may come at once is over.
		before := waits(2)
		looks = 0
		after := waits(20)
		// One that spins takes dozens for each.
		devices := uint64(1 + len(r.rails))
		require.LessOrEqual(t, after.Turns-before.Turns, 8*devices*(after.Waits-before.Waits+looks+1))
		accepted.expect(t, 1, 0, sent, 10)
		<-called
		closeBoth(t, dialed, accepted)
	})
}
