package efa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// attend has a reader of whole long messages on the connection.
func attend(t *testing.T, dialed, accepted *Conn, size int) {
	t.Helper()
	read := make(chan error, 1)
	go func() {
		_, err := accepted.ReadMessage(deadline(t), make([]byte, size))
		read <- err
	}()
	require.NoError(t, dialed.WriteMessage(deadline(t), message(1, 0, size)))
	require.NoError(t, <-read)
	eventually(t, accepted.reactor, func() bool { return accepted.attended })
}

// A long payload waits for a reader who has come before, and goes to his memory; when
// there is nothing else to do, it is received without him.
func TestPutOff(t *testing.T) {
	const size, count = 2 * putOffFrom, 3
	for _, comes := range []bool{true, false} {
		b := newBed(t, setting{})
		dialed, accepted := b.connect(t, Config{readersTime: time.Hour})
		attend(t, dialed, accepted, size)
		r := accepted.reactor
		release := seize(t, r)
		var sends []*Request
		for i := range count {
			q, err := dialed.Send(message(1, 1+i, size))
			require.NoError(t, err)
			sends = append(sends, q)
		}
		eventually(t, dialed.reactor, func() bool { return dialed.queue.Len() == 0 })
		require.Positive(t, r.step(0), "the lengths come in one turn")
		require.True(t, accepted.putOff)
		require.Zero(t, accepted.receiving)
		if !comes {
			for accepted.putOff {
				require.Zero(t, accepted.receiving)
				require.Positive(t, r.step(0), "an idle turn has receives posted in the next one")
			}
			require.EqualValues(t, count, accepted.receiving)
			for accepted.received < 1+count {
				require.Positive(t, r.step(0), "nothing happens any more")
			}
		}
		direct := accepted.stats.Direct
		read := make(chan error)
		go func() {
			for i := range count {
				buf := make([]byte, size)
				_, err := accepted.ReadMessage(deadline(t), buf)
				if err == nil && !bytes.Equal(message(1, 1+i, size), buf) {
					err = fmt.Errorf("message %d is another", i)
				}
				read <- err
			}
		}()
		for r.intake.Load() == nil {
			runtime.Gosched()
		}
		release()
		for i := range count {
			require.NoError(t, <-read)
			if comes && i == 0 {
				eventually(t, r, func() bool { return accepted.stats.Direct > direct })
			}
		}
		for _, q := range sends {
			require.NoError(t, q.Wait(deadline(t)))
		}
		closeBoth(t, dialed, accepted)
	}
}

// A writer does not wait for a reader who does not come again.
func TestPutOffIsNotForEver(t *testing.T) {
	const size, count = 2 * putOffFrom, 5
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		attend(t, dialed, accepted, size)
		for i := range count {
			require.NoError(t, dialed.WriteMessage(deadline(t), message(1, 1+i, size)))
		}
		for i := range count {
			buf := make([]byte, size)
			_, err := accepted.ReadMessage(deadline(t), buf)
			require.NoError(t, err)
			require.Equal(t, message(1, 1+i, size), buf)
		}
		closeBoth(t, dialed, accepted)
	})
}

// seize takes the progress role from all others, until the function that it returns
// is called.
func seize(t *testing.T, r *Reactor) (release func()) {
	t.Helper()
	for !r.lead() {
		runtime.Gosched()
	}
	leads := true
	release = func() {
		if leads {
			leads = false
			r.release()
		}
	}
	t.Cleanup(release)
	return release
}

// What was put off behind a message that is on its way, or behind one of which nothing
// is known yet, is received without a reader as well.
func TestPutOffBehindAnother(t *testing.T) {
	for _, c := range []struct {
		name  string
		first int
		order []int // in which the lengths come
	}{
		{"on its way", putOffFrom / 2, []int{0, 1}},
		{"unknown", 10, []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{})
			dialed, accepted := join(t, openOn(t, d1, Config{}), openOn(t, d2, Config{}))
			attend(t, dialed, accepted, 2*putOffFrom)
			r := accepted.reactor
			release := seize(t, r)
			n.HoldCompletions(d2)
			for i, size := range []int{c.first, 2 * putOffFrom} {
				_, err := dialed.Send(message(1, i, size))
				require.NoError(t, err)
			}
			eventually(t, dialed.reactor, func() bool { return dialed.queue.Len() == 0 })
			for len(n.Held(d2)) < 2 {
				r.step(0)
			}
			n.ReleaseCompletions(d2, c.order)
			require.Positive(t, r.step(0))
			require.True(t, accepted.putOff)
			for r.pending() || r.step(0) > 0 {
				r.step(0)
			}
			require.False(t, accepted.putOff)
			n.StopHolding(d2)
			release()
			require.NoError(t, dialed.Flush(deadline(t), FlushRemote))
			closeBoth(t, dialed, accepted)
		})
	}
}

// A peer's long message does not wait for a reader for as long as this side writes.
func TestPutOffWhileWriting(t *testing.T) {
	for _, pause := range []time.Duration{0, 2 * time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) {
			each(t, func(t *testing.T, b *bed) {
				dialed, accepted := b.connect(t, Config{})
				ctx := deadline(t)
				attend(t, dialed, accepted, 2*putOffFrom)
				written := make(chan error, 1)
				go func() {
					written <- errors.Join(dialed.WriteMessage(ctx, message(1, 1, 2*putOffFrom)), dialed.Flush(ctx, FlushRemote))
				}()
				buf := make([]byte, 10)
				for i := 0; len(written) == 0; i++ {
					require.NoError(t, accepted.WriteMessage(ctx, message(2, i, len(buf))))
					_, err := dialed.ReadMessage(ctx, buf)
					require.NoError(t, err)
					<-time.After(pause)
				}
				require.NoError(t, <-written)
				closeBoth(t, dialed, accepted)
			})
		})
	}
}

// A stream's reader who has no room for the whole of it is there all the same.
func TestNotPutOffForStream(t *testing.T) {
	const size = 2 * putOffFrom
	b := newBed(t, setting{})
	dialed, accepted := b.connect(t, Config{readersTime: time.Hour})
	attend(t, dialed, accepted, size)
	r := accepted.reactor
	release := seize(t, r)
	read := make(chan error, 1)
	go func() {
		_, err := accepted.Stream().Read(make([]byte, 10))
		read <- err
	}()
	for r.intake.Load() == nil {
		runtime.Gosched()
	}
	_, err := dialed.Send(message(1, 1, size))
	require.NoError(t, err)
	for accepted.arrived < 2 {
		r.step(0)
	}
	require.False(t, accepted.putOff)
	require.EqualValues(t, 1, accepted.receiving)
	release()
	require.NoError(t, <-read)
	closeBoth(t, dialed, accepted)
}

// A reader who gives up while the device has his memory keeps none from being received.
func TestPutOffBehindAbandonedRead(t *testing.T) {
	const size = 2 * putOffFrom
	n, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{})
	dialed, accepted := join(t, openOn(t, d1, Config{}), openOn(t, d2, Config{}))
	attend(t, dialed, accepted, size)
	ctx, cancel := context.WithCancel(deadline(t))
	read := make(chan error)
	go func() {
		_, err := accepted.ReadMessage(ctx, make([]byte, size))
		read <- err
	}()
	eventually(t, accepted.reactor, func() bool { return len(accepted.readers) == 1 })
	n.HoldCompletions(d2)
	for i := range 2 {
		_, err := dialed.Send(message(1, i, size))
		require.NoError(t, err)
	}
	require.NoError(t, n.AwaitHeld(deadline(t), d2, 2))
	n.ReleaseCompletions(d2, []int{0, 1})
	// Somebody has the first received, and may want the second: it is still put off.
	require.NoError(t, n.AwaitHeld(deadline(t), d2, 1))
	eventually(t, accepted.reactor, func() bool { return accepted.putOff && accepted.receiving == 1 })
	cancel()
	var in *InFlightError
	require.ErrorAs(t, <-read, &in)
	require.NoError(t, n.AwaitHeld(deadline(t), d2, 2))
	n.StopHolding(d2)
	<-in.Released
	buf := make([]byte, size)
	for i := range 2 {
		_, err := accepted.ReadMessage(deadline(t), buf)
		require.NoError(t, err)
		require.Equal(t, message(1, i, size), buf)
	}
	closeBoth(t, dialed, accepted)
}
