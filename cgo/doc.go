// Package cgo is weft's one door to C: libfabric's calls one to one, and a
// shim that posts and reaps operations in batches. It has no policy, no lock
// and no goroutine; package fabric gives it owners, errors and contracts, and
// is what programs use.
//
// There is C on Linux, in programs built with cgo. Elsewhere stub.go has the same
// names, so that what is above compiles, and Missing says what there is none of.
//
// Handles are plain values around pointers of libfabric. Nothing here checks
// that a handle is open, or keeps Go memory in place for an operation: both are
// the caller's business. Calls that fail return a [Code].
package cgo

// Code is what a call of libfabric returned: 0, or one of its error numbers,
// positive.
type Code int

// Version is an API version, as libfabric packs it.
type Version uint32

// Major and Minor are the two parts of a version.
func (v Version) Major() int { return int(v >> 16) }

// Minor is the second part of a version.
func (v Version) Minor() int { return int(v & 0xffff) }
