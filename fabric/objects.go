package fabric

import (
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/weft-go/weft/cgo"
)

// Fabric is an open network (fid_fabric). Its methods may be called from any
// goroutine.
type Fabric struct {
	handle
	raw cgo.Fabric
}

// OpenFabric opens the network that the info names.
func (i *Info) OpenFabric() (*Fabric, error) {
	raw, code := cgo.OpenFabric(i.raw)
	if code != 0 {
		return nil, fail("fi_fabric", i.Provider(), int(code))
	}
	f := &Fabric{raw: raw}
	f.open("fabric", i.Provider())
	return f, nil
}

// Close closes the fabric. ErrBusy says what is still open in it.
func (f *Fabric) Close() error {
	return f.close(func() error { return fail("fi_close of fabric", f.provider, int(f.raw.Close())) })
}

// EventQueue carries events about endpoints, and errors of the provider that
// belong to no operation (fid_eq). One goroutine at a time may read it.
type EventQueue struct {
	handle
	raw cgo.EventQueue
}

// OpenEventQueue opens an event queue.
func (f *Fabric) OpenEventQueue() (*EventQueue, error) {
	if err := f.enter(); err != nil {
		return nil, err
	}
	defer f.leave()
	raw, code := f.raw.OpenEventQueue(64)
	if code != 0 {
		return nil, fail("fi_eq_open", f.provider, int(code))
	}
	q := &EventQueue{raw: raw}
	q.open("event queue", f.provider, &f.handle)
	return q, nil
}

// Read takes one event and says whether there was one. An error event is
// returned as an *Error.
func (q *EventQueue) Read() (event uint32, ok bool, err error) {
	if err := q.enter(); err != nil {
		return 0, false, err
	}
	defer q.leave()
	ev, ok, code := q.raw.Read()
	switch {
	case code != 0:
		return 0, false, fail("fi_eq_read", q.provider, int(code))
	case ok && ev.Err != 0:
		return ev.Event, true, &Error{Op: "provider", Provider: q.provider, Errno: Errno(ev.Err), Detail: ev.Text}
	}
	return ev.Event, ok, nil
}

// Close closes the queue. ErrBusy says which endpoints still use it.
func (q *EventQueue) Close() error {
	return q.close(func() error { return fail("fi_close of event queue", q.provider, int(q.raw.Close())) })
}

// Domain is an open interface or device (fid_domain). Its methods may be
// called from any goroutine; what is opened in it may be used by one goroutine
// at a time if the hints said OneThread.
type Domain struct {
	handle
	fabric *Fabric
	info   *Info
	raw    cgo.Domain
	keys   atomic.Uint64
}

// OpenDomain opens the domain that the info names.
func (f *Fabric) OpenDomain(i *Info) (*Domain, error) {
	if err := f.enter(); err != nil {
		return nil, err
	}
	defer f.leave()
	raw, code := f.raw.OpenDomain(i.raw)
	if code != 0 {
		return nil, fail("fi_domain", i.Provider(), int(code))
	}
	d := &Domain{fabric: f, info: i, raw: raw}
	d.open("domain", i.Provider(), &f.handle)
	return d, nil
}

// Close closes the domain. ErrBusy says what is still open in it.
func (d *Domain) Close() error {
	return d.close(func() error { return fail("fi_close of domain", d.provider, int(d.raw.Close())) })
}

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

// Region is registered memory (fid_mr).
type Region struct {
	handle
	raw cgo.Region
	buf []byte
}

// Register makes buf known to the domain for sending and receiving. buf must
// stay in place until Close: memory outside the Go heap, or pinned.
func (d *Domain) Register(buf []byte) (*Region, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if len(buf) == 0 {
		return nil, &Error{Op: "fi_mr_reg", Provider: d.provider, Errno: errnoInvalid, Detail: "no memory to register"}
	}
	raw, code := d.raw.Register(unsafe.Pointer(&buf[0]), len(buf), cgo.AccessSend|cgo.AccessReceive, d.keys.Add(1))
	if code != 0 {
		return nil, fail("fi_mr_reg", d.provider, int(code))
	}
	r := &Region{raw: raw, buf: buf}
	r.open("region", d.provider, &d.handle)
	return r, nil
}

// Descriptor is what operations carry for buffers within the region.
func (r *Region) Descriptor() Descriptor { return Descriptor(r.raw.Descriptor()) }

// Close ends the registration. No operation may use it any more.
func (r *Region) Close() error {
	return r.close(func() error { return fail("fi_close of region", r.provider, int(r.raw.Close())) })
}
