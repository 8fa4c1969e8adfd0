//go:build !linux || !cgo

package cgo

import (
	"runtime"
	"syscall"
)

// Missing says what keeps libfabric from being called, and is empty where it can be.
func Missing() string {
	if runtime.GOOS != "linux" {
		return "weft calls libfabric on Linux only, and this program was built for " + runtime.GOOS +
			": run it built for Linux, with cgo"
	}
	return "this program was built without cgo, and calls libfabric through that: build it with CGO_ENABLED=1, a C compiler and the headers of libfabric (libfabric-dev)"
}

// NoSystem is the answer to every call.
const NoSystem = Code(syscall.ENOSYS)

// There are neither headers nor a library.
const (
	HeaderVersion Version = 0
	UnknownCaps   uint64  = 0
)

// LibraryVersion is that of no library.
func LibraryVersion() Version { return 0 }

// ErrorText returns the system's words for a code.
func ErrorText(code int) string { return syscall.Errno(code).Error() }

// What follows is computed, and needs nothing of the library.

// TrafficOfDSCP returns the traffic class of a differentiated services code point.
func TrafficOfDSCP(dscp uint8) uint32 { return uint32(dscp) | TrafficDSCP }

// DSCP returns the code point of a traffic class that was made of one, else 0.
func DSCP(traffic uint32) uint8 {
	if traffic&TrafficDSCP == 0 {
		return 0
	}
	return uint8(traffic)
}

// MPITag is a tag in the layout of FI_TAG_MPI.
func MPITag(tag int32, payload uint8) uint64 { return uint64(payload)<<32 | uint64(uint32(tag)) }

// ReceiveAddress names one of a peer's receive contexts.
func ReceiveAddress(peer uint64, index, bits int) uint64 { return uint64(index)<<(64-bits) | peer }

func takenInC(Purpose) int64 { return 0 }
