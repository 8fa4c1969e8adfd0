package efa

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
)

// countError counts the error of a call or of a callback; nil is none.
func (c *Conn) countError(err error) {
	if err == nil {
		return
	}
	if kind := c.stats.Errors.of(err); kind != nil {
		*kind++
	}
	if !c.stats.retired {
		return
	}
	if kind := c.reactor.retired.Errors.of(err); kind != nil {
		*kind++
	}
}

// of returns the count for an error, or nil if it says nothing bad.
func (s *ErrorStats) of(err error) *uint64 {
	// Those who poll have this again and again.
	if errors.Is(err, ErrWouldBlock) {
		return &s.WouldBlock
	}
	var ended *ConnError
	if errors.As(err, &ended) {
		// Its cause may be one of these as well.
		err = ended.Kind
	}
	var size *MessageSizeError
	var device *DeviceError
	switch {
	case errors.As(err, &size):
		return &s.MessageSize
	case errors.As(err, &device):
		return &s.Device
	case errors.Is(err, ErrPeerLost):
		return &s.PeerLost
	case errors.Is(err, ErrPeerClosed):
		return &s.PeerClosed
	case errors.Is(err, ErrProtocol):
		return &s.Protocol
	case errors.Is(err, ErrTransfer):
		return &s.Transfer
	case errors.Is(err, net.ErrClosed):
		return &s.Closed
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return &s.Deadline
	case errors.Is(err, context.Canceled):
		return &s.Canceled
	case errors.Is(err, io.EOF), errors.Is(err, ErrReady):
		return nil
	}
	return &s.Other
}
