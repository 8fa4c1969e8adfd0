package efa

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// handshakeCounts are a HandshakeStats for any goroutine.
type handshakeCounts struct {
	mu  sync.Mutex
	now HandshakeStats
}

func (h *handshakeCounts) stats() HandshakeStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// count notes what came of a handshake.
func (h *handshakeCounts) count(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*h.now.of(err)++
}

func (s *HandshakeStats) of(err error) *uint64 {
	var refused *RefusedError
	var not *NotWeftError
	switch {
	case err == nil:
		return &s.Succeeded
	case errors.As(err, &refused):
		return &s.Refused
	case errors.As(err, &not):
		return &s.NotWeft
	case errors.Is(err, ErrUnauthorized):
		return &s.Unauthorized
	case errors.Is(err, ErrTLS):
		return &s.TLS
	case errors.Is(err, ErrTooManyConnections):
		return &s.TooManyConnections
	case errors.Is(err, ErrTooManyHandshakes):
		return &s.TooManyHandshakes
	case errors.Is(err, ErrHandshakeTimeout):
		return &s.Timeout
	case errors.Is(err, ErrFrameTooLong):
		return &s.FrameTooLong
	case errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &s.Canceled
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNREFUSED):
		return &s.Ended
	}
	return &s.Other
}
