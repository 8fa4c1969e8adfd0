package fabric

import (
	"unsafe"

	"github.com/weft-go/weft/cgo"
)

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
