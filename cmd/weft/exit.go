package main

import (
	"errors"

	"github.com/weft-go/weft/cmd/weft/internal/launch"
	"github.com/weft-go/weft/cmd/weft/internal/transfer"
)

// The exit codes, as the package comment and the help tell them.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitNoProvider  = 3
	exitPeer        = 4
	exitMismatch    = 5
	exitWarnings    = 6
	exitInterrupted = 130
)

// errInterrupted is the cause of a context that a signal has ended.
var errInterrupted = errors.New("interrupted")

// usageError says what is wrong with the command line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// missingError is about providers that were asked for and cannot be used.
type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }

// peerError is about reaching the peer.
type peerError struct {
	text string
	err  error
}

func (e *peerError) Error() string { return e.text }
func (e *peerError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var usage *usageError
	var peer *peerError
	var missing *missingError
	var (
		start   *launch.StartError
		rank    *launch.RankError
		timeout *launch.TimeoutError
		found   *diagnosis
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return exitUsage
	case isNoProvider(err), errors.As(err, &missing):
		return exitNoProvider
	case errors.As(err, &start):
		return start.ExitCode()
	case errors.As(err, &rank):
		return rank.ExitCode()
	case errors.As(err, &timeout):
		return timeout.ExitCode()
	case errors.As(err, &found):
		return found.ExitCode()
	case errors.Is(err, errInterrupted), errors.Is(err, launch.ErrInterrupted):
		return exitInterrupted
	case errors.Is(err, transfer.ErrMismatch):
		return exitMismatch
	case errors.As(err, &peer), errors.Is(err, transfer.ErrLost), errors.Is(err, transfer.ErrProtocol):
		return exitPeer
	}
	return exitFailed
}
