package fabric_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

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

func TestEventQueueDoesNotAllocate(t *testing.T) {
	eachEventQueue(t, func(t *testing.T, q *fabric.EventQueue) {
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = q.Read() }))
	})
}

func TestEventQueueContextEndsWait(t *testing.T) {
	eachEventQueue(t, func(t *testing.T, q *fabric.EventQueue) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the program ends")
		ended := make(chan error)
		go func() {
			_, err := q.ReadWait(ctx)
			ended <- err
		}()
		cancel(why)
		require.Equal(t, why, <-ended)
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
