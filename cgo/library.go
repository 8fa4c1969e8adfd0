//go:build linux

package cgo

/*
#cgo pkg-config: libfabric
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#include "domainlists.h"
#include "inheritance.h"
#include "sharedroom.h"
#include "shim.h"
*/
import "C"

// Missing says what keeps libfabric from being called, and is empty where it can be.
func Missing() string { return "" }

// KeepDescriptors has what libfabric opens from now on closed in processes that this one starts. It says
// whether that can be done.
func KeepDescriptors() bool { return C.weft_keep_descriptors() == 0 }

// ReserveShared has libfabric reserve room for what it makes in /dev/shm, where it would end the process
// later if there is none: whoever makes it gets ENOSPC. It says whether that can be done.
func ReserveShared() bool { return C.weft_reserve_shared() == 0 }

// EmptyLists has closed endpoints of efa of libfabric 2 be in no list of their domain. It says whether that
// can be done.
func EmptyLists() bool { return C.weft_empty_lists() == 0 }

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
	NoSpace   Code = C.FI_ENOSPC
	Truncated Code = C.FI_ETRUNC
)

// ErrorText returns libfabric's words for a code.
//
// Implements: const char *fi_strerror(int errnum)
func ErrorText(code int) string { return C.GoString(C.fi_strerror(C.int(code))) }

// LibraryVersion is the API version of the library at run time.
//
// Implements: uint32_t fi_version(void)
func LibraryVersion() Version { return Version(C.fi_version()) }

// HeaderVersion is the API version that this package was compiled against.
const HeaderVersion = Version(C.FI_MAJOR_VERSION<<16 | C.FI_MINOR_VERSION)
