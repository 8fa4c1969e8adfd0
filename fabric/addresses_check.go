package fabric

import (
	"strconv"
	"syscall"
	"unsafe"
)

// The sizes of a struct sockaddr_in and sockaddr_in6.
const sizeofIPv4, sizeofIPv6 = 16, 28

// sizeofGID is that of what an address of efa begins with.
const sizeofGID = 16

// check refuses an address that the provider cannot have made, or cannot reach.
func (v *AddressVector) check(op string, address []byte) error {
	if detail := v.wrong(address); detail != "" {
		return v.invalid(op, detail)
	}
	return checkMemory(op, v.provider, address)
}

// wrong says what is wrong with an address, which may come from anywhere.
func (v *AddressVector) wrong(address []byte) string {
	const longest = 256
	length := v.length
	if v.format == FormatSocket && len(address) > 1 {
		length = sizeofIPv4
		if family(address) == syscall.AF_INET6 {
			length = sizeofIPv6
		}
	}
	switch {
	case len(address) == 0 || len(address) > longest:
		return "an address has 1 to " + strconv.Itoa(longest) + " bytes, this one has " + strconv.Itoa(len(address))
	case length != 0 && len(address) != length:
		return "addresses here have " + strconv.Itoa(length) + " bytes, this one has " + strconv.Itoa(len(address))
	case v.format == FormatText && (address[0] == 0 || address[len(address)-1] != 0):
		return "addresses here are text that ends with a zero byte"
	case v.format == FormatEFA && len(address) >= sizeofGID && [sizeofGID]byte(address) == [sizeofGID]byte{}:
		return "addresses here begin with a GID, which is not zeros"
	case v.format == FormatIPv4 || v.format == FormatIPv6 || v.format == FormatSocket:
		want := uint16(syscall.AF_INET)
		if length == sizeofIPv6 {
			want = syscall.AF_INET6
		}
		if got := family(address); got != want {
			return "address family " + strconv.Itoa(int(got)) + " where it should be " + strconv.Itoa(int(want))
		}
	}
	return ""
}

// family is the address family of a sockaddr.
func family(address []byte) uint16 {
	return *(*uint16)(unsafe.Pointer(&address[0]))
}
