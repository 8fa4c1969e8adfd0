package fabric

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// Error is the one shape of what goes wrong in libfabric or on the way to it.
// Compare with errors.Is: with one of the conditions of this package, with
// net.ErrClosed, or with a syscall.Errno.
type Error struct {
	// Op is the call or the action that failed, such as "fi_domain".
	Op string
	// Errno is the code that libfabric returned, or the closest one.
	Errno Errno
	// Provider is the provider concerned, empty where none was chosen yet.
	Provider string
	// Detail is what the provider, or weft, has to say beyond the code.
	Detail string
	// Excess is the number of bytes that did not fit, for ErrTruncated.
	Excess int
	// Data is what the provider gave with the failure of an operation, 256 bytes
	// of it at most: the address of a sender that is not known (SourceErrors), or
	// what its manual says. Most give nothing.
	Data []byte
	// The code is one that this provider has for a peer that is gone.
	gone bool
}

// Error says it all in one line: what failed, on which provider, and why.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Provider != "" {
		b.WriteString(" (" + e.Provider + ")")
	}
	b.WriteString(": ")
	b.WriteString(e.Errno.Error())
	if e.Excess > 0 {
		b.WriteString(", " + strconv.Itoa(e.Excess) + " bytes did not fit")
	}
	if e.Detail != "" && e.Detail != e.Errno.Error() {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

// Unwrap returns the Errno.
func (e *Error) Unwrap() error { return e.Errno }

// Is makes the error equal to net.ErrClosed where it says that a handle was
// closed, and to ErrUnreachable where that is what the provider means by its code.
func (e *Error) Is(target error) bool {
	return target == net.ErrClosed && e.Errno == errnoClosed || target == ErrUnreachable && e.gone
}

// saysGone says whether a provider has a code of its own for an operation whose peer is
// gone: sockets fails what is under way with a peer that is killed with EIO, and what
// is posted later, or is for nobody, with ENOENT.
func saysGone(provider string, errno Errno) bool {
	return provider == "sockets" && (errno == Errno(syscall.EIO) || errno == Errno(syscall.ENOENT))
}

// Errno is an error code of libfabric: below 256 those of the system, above
// its own (fi_errno.h). It is comparable, and equal under errors.Is to the
// conditions of this package and to the syscall.Errno of the same number.
type Errno int

// Error returns libfabric's text for the code.
//
// Implements: const char *fi_strerror(...)
func (e Errno) Error() string {
	if e == errnoClosed {
		return net.ErrClosed.Error()
	}
	return errnoText(int(e))
}

// Is makes system codes equal to their syscall.Errno.
func (e Errno) Is(target error) bool {
	if s, ok := target.(syscall.Errno); ok {
		return e > 0 && e < 256 && syscall.Errno(e) == s
	}
	if c, ok := target.(*condition); ok {
		for _, code := range c.codes {
			if e == code {
				return true
			}
		}
	}
	return false
}

// errnoClosed is weft's own: libfabric has no code for a closed handle.
const errnoClosed Errno = -1

// condition is a named kind of failure that one or more codes stand for.
type condition struct {
	text  string
	codes []Errno
}

func (c *condition) Error() string { return c.text }

// The named conditions, for errors.Is. Each stands for one or more codes of
// libfabric, of which Error.Errno has the one that was returned.
var (
	// ErrAgain: there is no room now; read completions and try again.
	ErrAgain error = &condition{"try again", []Errno{Errno(syscall.EAGAIN)}}
	// ErrTruncated: a message was longer than the buffer that received it.
	ErrTruncated error = &condition{"message truncated", []Errno{errnoTruncated, Errno(syscall.EMSGSIZE)}}
	// ErrCanceled: the operation was cancelled, or its connection has ended: tcp of either kind ends that
	// of a peer that asks for memory that it may not have.
	ErrCanceled error = &condition{"operation cancelled", []Errno{Errno(syscall.ECANCELED)}}
	// ErrNotFound: no provider, device or address answers the description.
	ErrNotFound error = &condition{"not found", []Errno{errnoNoData, Errno(syscall.ENOENT)}}
	// ErrNotSupported: the provider, or the library at hand, cannot do this.
	ErrNotSupported error = &condition{"not supported", []Errno{Errno(syscall.ENOSYS), Errno(syscall.EOPNOTSUPP), errnoBadFlags}}
	// ErrNoMessage: no message that matches has arrived, for a Peek.
	ErrNoMessage error = &condition{"no such message", []Errno{Errno(syscall.ENOMSG)}}
	// ErrMismatched: a receive was given a message of another tag, as shm of libfabric 1.17
	// does (docs/PROVIDERS.md). The message is in its buffer, and the completion has the tag
	// and the length.
	ErrMismatched error = &condition{"message of another tag", []Errno{Errno(syscall.EBADMSG)}}
	// ErrUnreachable: the peer is gone or was never there. Operations on sockets say so with
	// EIO and ENOENT, which stand for other things elsewhere.
	ErrUnreachable error = &condition{"peer unreachable", []Errno{
		Errno(syscall.EHOSTUNREACH), Errno(syscall.ENETUNREACH), Errno(syscall.ECONNREFUSED),
		Errno(syscall.ECONNRESET), Errno(syscall.ECONNABORTED), Errno(syscall.ENOTCONN),
		Errno(syscall.EHOSTDOWN), Errno(syscall.EPIPE), Errno(syscall.ETIMEDOUT), Errno(syscall.ESHUTDOWN),
	}}
	// ErrBusy: the handle still has children, or is in use.
	ErrBusy error = &condition{"in use", []Errno{Errno(syscall.EBUSY)}}
	// ErrInvalid: an argument cannot be right, and the error's text says why.
	ErrInvalid error = &condition{"invalid argument", []Errno{errnoInvalid}}
)

// Codes that weft itself gives.
const (
	errnoTruncated Errno = 265 // FI_ETRUNC
	errnoBadFlags  Errno = 260 // FI_EBADFLAGS
	errnoRemoteIO  Errno = 121 // EREMOTEIO, which not all systems have
	errnoInvalid         = Errno(syscall.EINVAL)
)

// IsClosed says that err is about something that was closed.
func IsClosed(err error) bool { return errors.Is(err, net.ErrClosed) }
