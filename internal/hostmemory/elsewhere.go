//go:build !linux

// Package hostmemory is memory that processes of one host map. There is none here, nor a device that
// could do with it.
package hostmemory

import "errors"

// Memory is memory of this process that others may map.
type Memory struct{ Bytes []byte }

var errNone = errors.New("no shared memory on this system")

// New fails here.
func New(string, int) (*Memory, error) { return nil, errNone }

// Name is that of no memory.
func (*Memory) Name() (process, descriptor uint64) { return 0, 0 }

// Close does nothing.
func (*Memory) Close() error { return nil }

// Map fails here.
func Map(string, uint64, uint64, int) ([]byte, error) { return nil, errNone }

// Unmap does nothing.
func Unmap([]byte) error { return nil }
