package fabrictest

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/weft-go/weft/fabric"
)

// registration is memory made known to a device.
type registration struct {
	device     *Device
	descriptor fabric.Descriptor
	buf        []byte
	inFlight   int
	closed     bool
}

// Register is as in [fabric.Device]. A device that does not need registration
// checks descriptors all the same where they are given.
func (d *Device) Register(buf []byte) (fabric.Registration, error) {
	d.enter(&inRegister)
	defer d.leave()
	if err := d.usable("fi_mr_reg"); err != nil {
		return nil, err
	}
	if len(buf) == 0 {
		return nil, d.invalid("fi_mr_reg", "there is nothing to register in an empty buffer")
	}
	d.registered++
	r := &registration{device: d, descriptor: d.registered, buf: buf}
	d.live[r.descriptor] = r
	d.network.stats.OpenRegistrations++
	return r, nil
}

func (r *registration) Descriptor() fabric.Descriptor { return r.descriptor }

// Close gives ErrBusy while operations that use the memory are in flight. A
// second Close does nothing, and the device may be closed already.
func (r *registration) Close() error {
	d := r.device
	d.network.mu.Lock()
	defer d.network.mu.Unlock()
	if r.closed {
		return nil
	}
	if r.inFlight > 0 && !d.gone {
		return d.fail("fi_close", syscall.EBUSY, fmt.Sprintf("%d operations use the registration", r.inFlight))
	}
	r.closed = true
	delete(d.live, r.descriptor)
	d.network.stats.OpenRegistrations--
	return nil
}

func (r *registration) covers(buf []byte) bool {
	start, registered := uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(unsafe.Pointer(unsafe.SliceData(r.buf)))
	return len(buf) == 0 || start >= registered && start+uintptr(len(buf)) <= registered+uintptr(len(r.buf))
}
