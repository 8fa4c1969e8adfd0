package fabric_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// eachEventQueue runs a test on an event queue of every provider here.
func eachEventQueue(t *testing.T, test func(t *testing.T, q *fabric.EventQueue)) {
	for _, p := range []string{"sockets", "tcp", "shm", "udp", "net"} {
		t.Run(p, func(t *testing.T) {
			infos, err := fabric.Discover(fabric.Hints{Provider: p, MemoryMode: everyMemoryMode})
			testenv.Need(t, p, err)
			f, err := infos[0].OpenFabric()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, f.Close()) })
			q, err := f.OpenEventQueue()
			testenv.Need(t, p+" with event queues", err)
			t.Cleanup(func() { require.NoError(t, q.Close()) })
			test(t, q)
		})
	}
}

func TestEventQueueEmpty(t *testing.T) {
	eachEventQueue(t, func(t *testing.T, q *fabric.EventQueue) {
		event, ok, err := q.Read()
		require.NoError(t, err)
		require.False(t, ok)
		require.Nil(t, event)
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = q.Read() }))

		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		defer cancel()
		_, err = q.ReadWait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ctx, cancel = context.WithCancel(context.Background())
		cancel()
		_, err = q.ReadWait(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestEventQueueWrite(t *testing.T) {
	eachEventQueue(t, func(t *testing.T, q *fabric.EventQueue) {
		const count = 20
		for i := range count {
			require.NoError(t, q.Write(fabric.NotifyEvent{Data: uint64(i)}))
		}
		if q.WaitDescriptor() >= 0 {
			ok, err := q.TryWait()
			require.NoError(t, err)
			if ok {
				fds := []unix.PollFd{{Fd: int32(q.WaitDescriptor()), Events: unix.POLLIN}}
				n, err := unix.Poll(fds, 30_000)
				require.NoError(t, err)
				require.Equal(t, 1, n)
			}
		}
		for i := range count {
			event, ok, err := q.Read()
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, fabric.NotifyEvent{Data: uint64(i)}, event)
		}
		_, ok, err := q.Read()
		require.NoError(t, err)
		require.False(t, ok)
	})
}

// What is written elsewhere ends a wait, and each event goes to one of those who
// wait.
func TestEventQueueWakes(t *testing.T) {
	eachEventQueue(t, func(t *testing.T, q *fabric.EventQueue) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		const count = 50
		got := make(chan uint64)
		for range 2 {
			go func() {
				for {
					event, err := q.ReadWait(ctx)
					if err != nil {
						return
					}
					got <- event.(fabric.NotifyEvent).Data
				}
			}()
		}
		seen := make(map[uint64]bool)
		for i := range uint64(count) {
			require.NoError(t, q.Write(fabric.NotifyEvent{Data: i}))
		}
		for range count {
			select {
			case n := <-got:
				require.False(t, seen[n], "%d twice", n)
				seen[n] = true
			case <-ctx.Done():
				t.Fatalf("%d of %d events", len(seen), count)
			}
		}
	})
}

func TestEventQueueCloseEndsWait(t *testing.T) {
	eachEventQueue(t, func(t *testing.T, q *fabric.EventQueue) {
		started, ended := make(chan struct{}), make(chan error)
		go func() {
			close(started)
			_, err := q.ReadWait(context.Background())
			ended <- err
		}()
		<-started
		require.NoError(t, q.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
		_, _, err := q.Read()
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, q.Write(fabric.NotifyEvent{}), net.ErrClosed)
		_, err = q.TryWait()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
