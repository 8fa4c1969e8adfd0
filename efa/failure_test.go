package efa

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
)

// A send that the provider reports as failed ends its own connection, with an
// error that says what it means for that one, and no other connection.
func TestFailedSends(t *testing.T) {
	for code, want := range map[fabric.Errno]error{
		fabric.Errno(syscall.ECONNREFUSED):  ErrPeerLost,
		fabric.Errno(syscall.ECONNRESET):    ErrPeerLost,
		fabric.Errno(syscall.ECONNABORTED):  ErrPeerLost,
		fabric.Errno(syscall.ENOTCONN):      ErrPeerLost,
		fabric.Errno(syscall.ESHUTDOWN):     ErrPeerLost,
		fabric.Errno(syscall.EPIPE):         ErrPeerLost,
		fabric.Errno(syscall.EHOSTUNREACH):  ErrPeerLost,
		fabric.Errno(syscall.EHOSTDOWN):     ErrPeerLost,
		fabric.Errno(syscall.ENETUNREACH):   ErrPeerLost,
		fabric.Errno(syscall.ENETRESET):     ErrPeerLost,
		fabric.Errno(syscall.ETIMEDOUT):     ErrPeerLost,
		121:                                 ErrPeerLost, // EREMOTEIO
		fabric.Errno(syscall.ENOENT):        ErrTransfer,
		269:                                 ErrPeerLost,
		fabric.Errno(syscall.EIO):           ErrTransfer,
		fabric.Errno(syscall.EINVAL):        ErrTransfer,
		fabric.Errno(syscall.EMSGSIZE):      ErrTransfer,
		fabric.Errno(syscall.ENOMEM):        ErrTransfer,
		fabric.Errno(syscall.EACCES):        ErrTransfer,
		fabric.Errno(syscall.ECANCELED):     ErrTransfer,
		fabric.Errno(syscall.EOPNOTSUPP):    ErrTransfer,
		fabric.Errno(syscall.EADDRNOTAVAIL): ErrTransfer,
		256:                                 ErrTransfer, // FI_EOTHER
		268:                                 ErrTransfer, // FI_EOVERRUN
	} {
		t.Run(code.Error(), func(t *testing.T) {
			b := newBed(t, setting{Name: "fake", Faults: fabrictest.Faults{FailSend: 1, FailSendWith: code}})
			from, to := b.open(t, Config{}), b.open(t, Config{})
			good, goodEnd := join(t, from, to)
			bad, badEnd := join(t, from, to)
			reading := make(chan error, 1)
			go func() {
				_, err := bad.ReadMessage(deadline(t), make([]byte, 1))
				reading <- err
			}()
			request, err := bad.Send(make([]byte, 10_000))
			require.NoError(t, err)
			ends := []error{request.Wait(deadline(t)), <-reading, bad.WriteMessage(deadline(t), nil), bad.Flush(deadline(t), FlushRemote)}
			for i, err := range ends {
				require.ErrorIs(t, err, want, "%d", i)
				var cause *fabric.Error
				require.ErrorAs(t, err, &cause)
				require.Equal(t, code, cause.Errno)
				var device *DeviceError
				require.False(t, errors.As(err, &device), "the device is well")
				for _, other := range []error{ErrPeerLost, ErrTransfer} {
					require.Equal(t, other == want, errors.Is(err, other))
				}
			}
			ended := map[error]ErrorStats{ErrPeerLost: {PeerLost: 1}, ErrTransfer: {Transfer: 1}}
			require.Equal(t, ended[want], from.Stats().Ended)
			_, err = badEnd.ReadMessage(deadline(t), make([]byte, 10_000))
			require.ErrorIs(t, err, ErrPeerLost)
			require.ErrorIs(t, bad.Close(), want, "the peer has not confirmed it")
			require.NoError(t, badEnd.Close())
			require.NoError(t, good.WriteMessage(deadline(t), message(1, 0, 10)))
			goodEnd.expect(t, 1, 0, 1, 10)
			closeBoth(t, good, goodEnd)
		})
	}
}

// What tcp alone means by a code.
func TestFailuresOfProviders(t *testing.T) {
	for _, provider := range []string{"tcp;ofi_rxm", "tcp"} {
		canceled := fabric.Error{Errno: fabric.Errno(syscall.ECANCELED), Provider: provider}
		require.Equal(t, ErrPeerLost, failureKind(&canceled), provider)
		canceled.Provider = "efa"
		require.Equal(t, ErrTransfer, failureKind(&canceled))
	}
}

// A reactor that is closed in the middle of messages of all sizes, in both
// directions, and of reads that are given up, is a lost peer to the other side.
func TestReactorIsClosedUnderLoad(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, size := range []int{100, 9000, 16_000, 100_000, 1 << 20} {
			from, to := b.open(t, Config{}), b.open(t, Config{})
			var all sync.WaitGroup
			var carried atomic.Int64
			for range 2 {
				one, other := join(t, from, to)
				for _, ends := range [2][2]*Conn{{one, other}, {other, one}} {
					all.Go(func() {
						requireLost(t, to, ends[0], func() error { return ends[0].WriteMessage(context.Background(), make([]byte, size)) })
					})
					all.Go(func() {
						buf := make([]byte, size)
						requireLost(t, to, ends[1], func() error {
							ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
							defer cancel()
							_, err := ends[1].ReadMessage(ctx, buf)
							var in *InFlightError
							if errors.As(err, &in) {
								<-in.Released
							}
							if errors.Is(err, context.DeadlineExceeded) {
								return nil
							}
							carried.Add(1)
							return err
						})
					})
				}
			}
			require.Eventually(t, func() bool { return carried.Load() > 20 }, patience, time.Millisecond)
			require.NoError(t, to.Close())
			all.Wait()
			require.NoError(t, from.Close())
		}
	})
}

// requireLost calls f until it fails: on the side that is closed with net.ErrClosed,
// and on the other with ErrPeerLost.
func requireLost(t *testing.T, closed *Reactor, c *Conn, f func() error) {
	want := ErrPeerLost
	if c.reactor == closed {
		want = net.ErrClosed
	}
	for {
		if err := f(); err != nil {
			if !errors.Is(err, want) {
				t.Errorf("%v, and not %v", err, want)
			}
			return
		}
	}
}
