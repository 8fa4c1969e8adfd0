package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode"
)

// The kinds of failure, for errors.Is. What is none of them is about a file,
// or is the cause of the context's end.
var (
	// ErrLost: the connection ended, or was silent for too long, before the
	// transfer was complete.
	ErrLost = errors.New("connection lost")
	// ErrProtocol: the peer does not speak this protocol, or breaks it.
	ErrProtocol = errors.New("protocol broken")
	// ErrMismatch: what arrived is not what was sent.
	ErrMismatch = errors.New("verification failed")
)

// FileError says what could not be done with which file.
type FileError struct {
	Doing string // such as "write"
	Name  string
	Err   error
}

func (e *FileError) Error() string {
	return "cannot " + e.Doing + " " + strconv.Quote(e.Name) + ": " + e.Err.Error() + advice(e.Err)
}

// Unwrap returns the reason.
func (e *FileError) Unwrap() error { return e.Err }

// fileError leaves away the operation and path that package os puts into its
// errors: the path may be a temporary one, which would mislead.
func fileError(doing, name string, err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &FileError{Doing: doing, Name: name, Err: err}
}

func advice(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "; free some space there and send again"
	case errors.Is(err, fs.ErrPermission):
		return "; check its permissions"
	case errors.Is(err, syscall.EROFS):
		return "; choose a folder that can be written"
	case errors.Is(err, syscall.EMFILE):
		return "; raise the limit of open files (ulimit -n)"
	}
	return ""
}

// refused is the error for a name that the receiver does not accept.
func refused(name, format string, args ...any) error {
	return &FileError{Doing: "accept", Name: name, Err: fmt.Errorf("it "+format, args...)}
}

func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// PeerError is a failure that the other side has told of.
type PeerError struct {
	Side string // "sender" or "receiver"
	Kind error  // ErrLost, ErrProtocol, ErrMismatch, or nil for its files
	Text string // in the words of the other side, printable
}

func (e *PeerError) Error() string { return "the " + e.Side + " says: " + e.Text }

// Unwrap returns the kind.
func (e *PeerError) Unwrap() error { return e.Kind }

var kindNames = map[string]error{
	"lost":     ErrLost,
	"protocol": ErrProtocol,
	"mismatch": ErrMismatch,
}

const maxFailureText = 1 << 10

func failureOf(err error) *failure {
	f := &failure{Text: printable(err.Error())}
	for name, kind := range kindNames {
		if errors.Is(err, kind) {
			f.Kind = name
		}
	}
	return f
}

func (f *failure) toError(side string) error {
	return &PeerError{Side: side, Kind: kindNames[f.Kind], Text: printable(f.Text)}
}

// printable makes text of the peer fit for a terminal: one line of bounded
// length without control characters.
func printable(text string) string {
	if len(text) > maxFailureText {
		text = text[:maxFailureText]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// errSilent says that the time limit has passed.
var errSilent = fmt.Errorf("%w: the peer has not made progress within the time limit", ErrLost)

// connectionError explains why a call on the connection failed. ctx is the
// caller's, without the time limit of the one call.
func connectionError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: the peer closed it before the transfer was complete", ErrLost)
	case errors.Is(err, context.DeadlineExceeded):
		return errSilent
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}
