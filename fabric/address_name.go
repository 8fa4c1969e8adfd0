package fabric

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"syscall"
)

// addressName is an address as people write it, without a port.
func addressName(format AddressFormat, address []byte) string {
	var host netip.Addr
	switch format {
	case FormatText:
		text, _, _ := bytes.Cut(address, []byte{0})
		return string(text)
	case FormatEFA:
		if len(address) >= sizeofGID {
			host = netip.AddrFrom16([sizeofGID]byte(address))
		}
	case FormatSocket, FormatIPv4, FormatIPv6:
		switch {
		case len(address) == sizeofIPv4 && binary.NativeEndian.Uint16(address) == syscall.AF_INET:
			host = netip.AddrFrom4([4]byte(address[4:]))
		case len(address) == sizeofIPv6 && binary.NativeEndian.Uint16(address) == syscall.AF_INET6:
			host = netip.AddrFrom16([16]byte(address[8:]))
		}
	}
	if host.IsValid() {
		return host.Unmap().String()
	}
	return hex.EncodeToString(address)
}
