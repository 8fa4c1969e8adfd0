package fabric_test

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestErrorsAreTheirConditions(t *testing.T) {
	conditions := []error{
		fabric.ErrAgain, fabric.ErrTruncated, fabric.ErrCanceled, fabric.ErrNotFound,
		fabric.ErrNotSupported, fabric.ErrUnreachable, fabric.ErrBusy, fabric.ErrInvalid, net.ErrClosed,
	}
	for code, want := range map[fabric.Errno]error{
		fabric.Errno(syscall.EAGAIN):       fabric.ErrAgain,
		265:                                fabric.ErrTruncated,
		fabric.Errno(syscall.ECANCELED):    fabric.ErrCanceled,
		fabric.Errno(syscall.ENODATA):      fabric.ErrNotFound,
		fabric.Errno(syscall.ENOSYS):       fabric.ErrNotSupported,
		fabric.Errno(syscall.EOPNOTSUPP):   fabric.ErrNotSupported,
		fabric.Errno(syscall.ECONNREFUSED): fabric.ErrUnreachable,
		fabric.Errno(syscall.EBUSY):        fabric.ErrBusy,
		fabric.Errno(syscall.EINVAL):       fabric.ErrInvalid,
		fabric.Errno(syscall.EIO):          nil,
	} {
		err := fmt.Errorf("around: %w", &fabric.Error{Op: "op", Errno: code})
		for _, c := range conditions {
			require.Equal(t, c == want, errors.Is(err, c), "%v is %v", code, c)
		}
		if code < 256 {
			require.ErrorIs(t, err, syscall.Errno(code))
		}
	}
	require.NotErrorIs(t, &fabric.Error{Errno: 265}, syscall.Errno(265))
}

func TestErrorText(t *testing.T) {
	err := &fabric.Error{Op: "tagged receive", Provider: "tcp", Errno: 265, Detail: "said the provider", Excess: 12}
	require.Equal(t, "tagged receive (tcp): Truncation error, 12 bytes did not fit: said the provider", err.Error())
}
