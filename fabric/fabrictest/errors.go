package fabrictest

import (
	"fmt"
	"syscall"

	"github.com/weft-go/weft/fabric"
)

const (
	// codeClosed is what package fabric uses for a closed handle: such an error
	// is net.ErrClosed.
	codeClosed fabric.Errno = -1
	// codeTruncated is FI_ETRUNC.
	codeTruncated fabric.Errno = 265
)

// usable returns the error of a device that was closed or killed.
func (d *Device) usable(call string) error {
	switch {
	case d.closed:
		return &fabric.Error{Op: call, Errno: codeClosed, Provider: d.attributes.Provider}
	case d.killed:
		return d.fail(call, syscall.ENODEV, "the device was killed by the test")
	}
	return nil
}

func (d *Device) invalid(call, format string, values ...any) error {
	return d.fail(call, syscall.EINVAL, fmt.Sprintf(format, values...))
}

func (d *Device) fail(call string, code syscall.Errno, detail string) error {
	return &fabric.Error{Op: call, Errno: fabric.Errno(code), Provider: d.attributes.Provider, Detail: detail}
}

// faulty is the error of Faults.FailSend.
func (d *Device) faulty(kind fabric.OpKind) error {
	code := d.network.faults.FailSendWith
	if code == 0 {
		code = fabric.Errno(syscall.EIO)
	}
	return &fabric.Error{Op: callNames[kind], Errno: code, Provider: d.attributes.Provider, Detail: "a fault of the test"}
}

func unreachable(d *Device, kind fabric.OpKind, code syscall.Errno) error {
	return d.fail(callNames[kind], code, "the peer is gone or was never there")
}

// truncated is FI_ETRUNC, as fi_cq_readerr tells it.
func (d *Device) truncated(room, excess int) error {
	return &fabric.Error{
		Op: callNames[fabric.OpTaggedReceive], Errno: codeTruncated, Provider: d.attributes.Provider,
		Detail: fmt.Sprintf("a message of %d bytes came to a buffer of %d", room+excess, room), Excess: excess,
	}
}
