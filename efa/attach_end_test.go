package efa

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// Close waits for the device, not for the peer, and tells it nothing.
func TestAttachClose(t *testing.T) {
	eachPlain(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		x, y := attach(t, from, to, AttachConfig{})
		ctx := deadline(t)
		waits := make(chan error, 1)
		go func() {
			_, err := x.ReadMessage(ctx, make([]byte, 10))
			waits <- err
		}()
		const count = 12
		results := make(chan error, count)
		for i := range count {
			require.NoError(t, x.WriteMessageAsync(message(1, i, 500*i), func(err error) { results <- err }))
		}
		// The reader is here, so that the device gets rid of what is long.
		read := make(chan error, 1)
		go func() {
			var all error
			buf := make([]byte, 10000)
			for i := range count {
				n, err := y.ReadMessage(ctx, buf)
				if err != nil {
					read <- err
					return
				}
				if !bytes.Equal(message(1, i, 500*i), buf[:n]) {
					all = errors.Join(all, errors.New("wrong content"))
				}
			}
			read <- all
		}()
		// Of those that are begun, all get there; on the narrow device some are
		// not, and say so.
		begun := min(count, x.plain.writes)
		if begun == count {
			require.NoError(t, x.Close())
			require.NoError(t, <-read)
		}
		for range begun {
			require.NoError(t, <-results)
		}
		require.NoError(t, x.Close())
		require.NoError(t, x.Close(), "twice")
		require.ErrorIs(t, <-waits, net.ErrClosed)
		require.ErrorIs(t, x.WriteMessage(ctx, nil), net.ErrClosed)
		require.ErrorIs(t, x.WriteMessageAsync(nil, nil), net.ErrClosed)
		// The peer hears nothing of it.
		short, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			for {
				if _, err := y.ReadMessage(short, make([]byte, 10000)); err != nil {
					ended <- err
					return
				}
			}
		}()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.NoError(t, y.Close())
		detachBoth(t, x, y)
		// Others may have the same ids afterwards, when all was read.
		if begun == count {
			x, y = attach(t, from, to, AttachConfig{FirstWrite: 77, FirstRead: 99})
			exchange(t, 3, x, y, []int{1, 2000, 0})
			detachBoth(t, x, y)
		}
	})
}

// What the device is not done with keeps Close for so long as it may take.
func TestAttachCloseDeadline(t *testing.T) {
	n := fabrictest.NewNetwork(fabrictest.Faults{})
	d1, err := n.Open(fabrictest.DeviceConfig{})
	require.NoError(t, err)
	d2, err := n.Open(fabrictest.DeviceConfig{})
	require.NoError(t, err)
	x, y := attach(t, openOn(t, d1, Config{DrainTimeout: 10 * time.Millisecond}), openOn(t, d2, Config{}), AttachConfig{})
	n.Partition(d1, d2)
	result := make(chan error, 1)
	require.NoError(t, x.WriteMessageAsync(make([]byte, 1000), func(err error) { result <- err }))
	require.ErrorIs(t, x.Close(), os.ErrDeadlineExceeded)
	require.ErrorIs(t, <-result, net.ErrClosed)
	// The place is taken until the device lets go.
	short, cancel := context.WithCancel(deadline(t))
	refused := make(chan error, 1)
	go func() {
		_, err := x.reactor.Attach(short, AttachConfig{Address: d2.LocalAddress()})
		refused <- err
	}()
	cancel()
	require.ErrorIs(t, <-refused, context.Canceled)
	n.Heal(d1, d2)
	again, err := x.reactor.Attach(deadline(t), AttachConfig{Address: y.reactor.LocalAddress()})
	require.NoError(t, err)
	require.NoError(t, again.CloseNow())
	require.NoError(t, y.CloseNow())
}

// A peer that is gone ends the connection as soon as the provider says so.
func TestAttachPeerIsGone(t *testing.T) {
	for _, s := range []setting{
		{Name: "fake"},
		{Name: "fake-fails", Faults: fabrictest.Faults{DeadPeers: fabrictest.DeadPeersFail}},
		{Name: "sockets", Provider: "sockets"},
		{Name: "tcp", Provider: "tcp"},
	} {
		t.Run(s.Name, func(t *testing.T) {
			b := newBed(t, s)
			from, to := b.open(t, Config{DrainTimeout: 100 * time.Millisecond}), b.open(t, Config{})
			x, y := attach(t, from, to, AttachConfig{})
			exchange(t, 1, x, y, []int{100})
			exchange(t, 2, y, x, []int{100})
			require.NoError(t, to.Close())
			ctx := deadline(t)
			if s.Provider == "tcp" {
				// In libfabric 1.17 it may also refuse for ever.
				short, cancel := context.WithTimeout(ctx, 3*time.Second)
				defer cancel()
				ctx = short
			}
			var err error
			for err == nil {
				err = x.WriteMessage(ctx, make([]byte, 100))
			}
			if s.Provider == "tcp" && errors.Is(err, context.DeadlineExceeded) {
				require.ErrorIs(t, x.Close(), os.ErrDeadlineExceeded)
				require.NoError(t, y.Close())
				return
			}
			require.ErrorIs(t, err, ErrPeerLost)
			_, err = x.ReadMessage(ctx, make([]byte, 100))
			require.ErrorIs(t, err, ErrPeerLost)
			require.ErrorIs(t, x.Close(), ErrPeerLost)
			require.NoError(t, y.Close())
		})
	}
}

// Where the provider says nothing, and refuses for ever, calls end by their
// context and by Close.
func TestAttachPeerIsSilent(t *testing.T) {
	b := newBed(t, setting{Name: "fake", Faults: fabrictest.Faults{DeadPeers: fabrictest.DeadPeersRefuse}})
	from, to := b.open(t, Config{DrainTimeout: 10 * time.Millisecond}), b.open(t, Config{})
	x, _ := attach(t, from, to, AttachConfig{})
	good, goodEnd := attach(t, from, b.open(t, Config{}), AttachConfig{LocalID: 3, RemoteID: 4})
	require.NoError(t, to.Close())
	short, cancel := context.WithCancel(deadline(t))
	ended := make(chan error, 2)
	go func() { ended <- x.WriteMessage(short, make([]byte, 1000)) }()
	go func() {
		_, err := x.ReadMessage(short, make([]byte, 1000))
		ended <- err
	}()
	require.Eventually(t, func() (begun bool) {
		from.do(func() { begun = x.sent == 1 && len(x.readers) == 1 })
		return begun
	}, patience, time.Millisecond)
	exchange(t, 1, good, goodEnd, []int{1, 1000})
	cancel()
	var in *InFlightError
	for range 2 {
		err := <-ended
		require.ErrorIs(t, err, context.Canceled)
		if errors.As(err, &in) {
			defer func() { <-in.Released }()
		}
	}
	require.ErrorIs(t, x.Close(), os.ErrDeadlineExceeded)
	detachBoth(t, good, goodEnd)
}

// Attach, exchange and Close while other connections come and go.
func TestAttachComesAndGoes(t *testing.T) {
	eachPlain(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		for i := range 40 {
			x, y := attach(t, from, to, AttachConfig{LocalID: uint32(i % 3), RemoteID: uint32(i % 5), FirstWrite: uint32(100 * i), FirstRead: rand.Uint32()})
			exchange(t, i, x, y, []int{i, 100 * i})
			exchange(t, i, y, x, []int{200 * i})
			require.NoError(t, x.Close())
			require.NoError(t, y.Close())
		}
	})
}
