package fabric

import (
	"fmt"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// Version is a version, of libfabric's API or of a provider.
type Version struct{ Major, Minor int }

// String is such as "1.17".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// LibraryVersion is the version of the library that the process runs with, and 0.0 in
// a program that cannot call libfabric.
//
// Implements: uint32_t fi_version(...)
func LibraryVersion() Version { return version(cgo.LibraryVersion()) }

// HeaderVersion is the version of the headers that weft was compiled against.
func HeaderVersion() Version { return version(cgo.HeaderVersion) }

func version(v cgo.Version) Version { return Version{v.Major(), v.Minor()} }

// MemoryInUse returns the bytes outside the Go heap that weft has allocated,
// by purpose, such as "arenas". It is empty when every handle is closed. What libfabric
// allocates by itself is not in it, nor the little that weft keeps for good: copies of tables of
// libfabric's, and the last 1024 connections of ofi_rxm that were closed, 300 KB in all. The map
// is the caller's. Any goroutine may call it.
func MemoryInUse() map[string]int64 {
	m := make(map[string]int64)
	for p, n := range cgo.MemoryInUse() {
		m[p.String()] = n
	}
	if n := arenaBytes.Load(); n != 0 {
		m["arenas"] = n
	}
	return m
}

// Supported says whether this program can call libfabric at all: nil, or an *Error that
// is ErrNotSupported and tells what the program would have to be built with. Everything
// that opens something returns such an error where this does.
func Supported() error { return available("libfabric", "") }

func available(op, provider string) error {
	if detail := cgo.Missing(); detail != "" {
		return &Error{Op: op, Provider: provider, Errno: Errno(syscall.ENOSYS), Detail: detail}
	}
	return nil
}

// errnoText returns libfabric's words for a code.
func errnoText(code int) string { return cgo.ErrorText(code) }
