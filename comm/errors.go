package comm

import (
	"errors"
	"fmt"
	"net"
)

// errClosed is the error of calls after Close.
var errClosed = fmt.Errorf("comm: closed: %w", net.ErrClosed)

// ErrCanceled is the error of a request that Request.Cancel has ended.
var ErrCanceled = errors.New("comm: the request was canceled")

// ErrLeft says that a rank has closed its communicators.
var ErrLeft = errors.New("comm: the rank has closed its communicators")

// ErrProtocol says that a rank has sent what it should not have.
var ErrProtocol = errors.New("comm: message that is none of this protocol")

// ArgumentError is about an argument that is out of its range.
type ArgumentError struct {
	Name  string // such as "tag"
	Value int
	Want  string // what would be right
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("comm: %s %d, want %s", e.Name, e.Value, e.Want)
}

// TruncationError says that a message was longer than the buffer of its receive,
// which has the beginning of it. The rest is lost.
type TruncationError struct {
	Size, Limit int // of the message and of the buffer, in bytes
}

func (e *TruncationError) Error() string {
	return fmt.Sprintf("comm: a message of %d bytes for a buffer of %d", e.Size, e.Limit)
}

// RankError says that a rank cannot be reached any more, or has left.
type RankError struct {
	Rank  int // in the communicator of the call
	Cause error
}

func (e *RankError) Error() string { return fmt.Sprintf("comm: rank %d is lost: %v", e.Rank, e.Cause) }

// Unwrap returns the cause: efa.ErrPeerLost, ErrLeft, ErrProtocol, ...
func (e *RankError) Unwrap() error { return e.Cause }

// MissingError says which ranks have not connected to one that is in Open.
type MissingError struct {
	Rank  int   // the one that has waited
	Ranks []int // those that have not come
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("comm: ranks %v have not connected to rank %d", e.Ranks, e.Rank)
}

// MatchingError says that the device cannot be left to match (MatchByProvider).
type MatchingError struct {
	Provider string
	Cause    error
}

func (e *MatchingError) Error() string {
	return "comm: " + e.Provider + " cannot match for this world: " + e.Cause.Error()
}

// Unwrap returns why: it is fabric.ErrNotSupported.
func (e *MatchingError) Unwrap() error { return e.Cause }

// ContextError says that a communicator cannot be made, because one of its ranks is in
// as many already as there are contexts for: 8191 where the provider matches, where
// those that were closed count.
type ContextError struct{ Limit int }

func (e *ContextError) Error() string {
	return fmt.Sprintf("comm: a rank is in more than %d communicators", e.Limit)
}

// ConfigError is about a Config that cannot be used.
type ConfigError struct {
	Field  string
	Detail string
}

func (e *ConfigError) Error() string { return "comm: Config." + e.Field + ": " + e.Detail }
