package efa

import (
	"errors"
	"syscall"
	"testing"

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
		fabric.Errno(syscall.EREMOTEIO):     ErrPeerLost,
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
			b := newBed(t, setting{name: "fake", faults: fabrictest.Faults{FailSend: 1, FailSendWith: code}})
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

// What the sockets provider alone means by a code.
func TestFailuresOfSockets(t *testing.T) {
	for _, code := range []syscall.Errno{syscall.EIO, syscall.ENOENT} {
		require.Equal(t, ErrPeerLost, failureKind(&fabric.Error{Errno: fabric.Errno(code), Provider: "sockets"}))
		require.Equal(t, ErrTransfer, failureKind(&fabric.Error{Errno: fabric.Errno(code), Provider: "efa"}))
	}
}
