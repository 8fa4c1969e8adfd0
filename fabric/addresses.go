package fabric

import (
	"strconv"
	"syscall"
	"unsafe"

	"github.com/weft-go/weft/cgo"
)

// AddressVector holds the peers that endpoints send to (fid_av, a table). One
// goroutine at a time may use it.
type AddressVector struct {
	handle
	raw    cgo.AddressVector
	length int
}

// OpenAddressVector opens an empty table of peers.
func (d *Domain) OpenAddressVector() (*AddressVector, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	raw, code := d.raw.OpenAddressVector(0)
	if code != 0 {
		return nil, fail("fi_av_open", d.provider, int(code))
	}
	v := &AddressVector{raw: raw}
	switch d.info.a.AddressFormat {
	case cgo.FormatIPv4:
		v.length = syscall.SizeofSockaddrInet4
	case cgo.FormatIPv6:
		v.length = syscall.SizeofSockaddrInet6
	case cgo.FormatEFA:
		v.length = 32
	}
	v.open("address vector", d.provider, &d.handle)
	return v, nil
}

// Insert makes a peer known by its endpoint's name. An address that the
// provider cannot have made is refused with ErrInvalid, because libfabric reads
// as many bytes as the address should have.
func (v *AddressVector) Insert(address []byte) (Address, error) {
	if err := v.enter(); err != nil {
		return AddressAny, err
	}
	defer v.leave()
	if detail := v.wrong(address); detail != "" {
		return AddressAny, &Error{Op: "fi_av_insert", Provider: v.provider, Errno: errnoInvalid, Detail: detail}
	}
	peer, code := v.raw.Insert(address)
	if code != 0 {
		return AddressAny, fail("fi_av_insert", v.provider, int(code))
	}
	return Address(peer), nil
}

// wrong says what is wrong with an address, which may come from anywhere.
func (v *AddressVector) wrong(address []byte) string {
	const longest = 256
	switch {
	case len(address) == 0 || len(address) > longest:
		return "an address has 1 to " + strconv.Itoa(longest) + " bytes, this one has " + strconv.Itoa(len(address))
	case v.length != 0 && len(address) != v.length:
		return "addresses here have " + strconv.Itoa(v.length) + " bytes, this one has " + strconv.Itoa(len(address))
	case v.length == 0 && address[len(address)-1] != 0:
		return "addresses here are text that ends with a zero byte"
	case v.length == syscall.SizeofSockaddrInet4 || v.length == syscall.SizeofSockaddrInet6:
		family := *(*uint16)(unsafe.Pointer(&address[0]))
		want := uint16(syscall.AF_INET)
		if v.length == syscall.SizeofSockaddrInet6 {
			want = syscall.AF_INET6
		}
		if family != want {
			return "address family " + strconv.Itoa(int(family)) + " where it should be " + strconv.Itoa(int(want))
		}
	}
	return ""
}

// Remove forgets a peer. No operation to it may be in flight.
func (v *AddressVector) Remove(peer Address) error {
	if err := v.enter(); err != nil {
		return err
	}
	defer v.leave()
	return fail("fi_av_remove", v.provider, int(v.raw.Remove(uint64(peer))))
}

// Close closes the table. ErrBusy says which endpoints still use it.
func (v *AddressVector) Close() error {
	return v.close(func() error { return fail("fi_close of address vector", v.provider, int(v.raw.Close())) })
}
