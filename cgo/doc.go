// Package cgo is weft's one door to C: libfabric's calls one to one, and a
// shim that posts and reaps operations in batches. It has no policy, no lock
// and no goroutine; package fabric gives it owners, errors and contracts, and
// is what programs use.
//
// Handles are plain values around pointers of libfabric. Nothing here checks
// that a handle is open, or keeps Go memory in place for an operation: both are
// the caller's business. Calls that fail return a [Code].
package cgo

/*
#cgo pkg-config: libfabric
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#include "shim.h"
*/
import "C"

// Code is what a call of libfabric returned: 0, or one of its error numbers,
// positive.
type Code int

func codeOf(ret C.int) Code {
	if ret < 0 {
		return Code(-ret)
	}
	return 0
}

// Codes that decide what happens next.
const (
	Again     Code = C.FI_EAGAIN
	NoSystem  Code = C.FI_ENOSYS
	NoData    Code = C.FI_ENODATA
	NoEntry   Code = C.FI_ENOENT
	Truncated Code = C.FI_ETRUNC
)

// ErrorText returns libfabric's words for a code.
//
// Implements: const char *fi_strerror(int errnum)
func ErrorText(code int) string { return C.GoString(C.fi_strerror(C.int(code))) }

// Version is an API version, as libfabric packs it.
type Version uint32

// Major and Minor are the two parts of a version.
func (v Version) Major() int { return int(v >> 16) }

// Minor is the second part of a version.
func (v Version) Minor() int { return int(v & 0xffff) }

// LibraryVersion is the API version of the library at run time.
//
// Implements: uint32_t fi_version(void)
func LibraryVersion() Version { return Version(C.fi_version()) }

// HeaderVersion is the API version that this package was compiled against.
const HeaderVersion = Version(C.FI_MAJOR_VERSION<<16 | C.FI_MINOR_VERSION)
