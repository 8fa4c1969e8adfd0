package fabric

import (
	"sync/atomic"

	"github.com/weft-go/weft/cgo"
)

// Domain is an open interface or device (fid_domain). Its methods may be
// called from any goroutine; what is opened in it may be used by one goroutine
// at a time if the hints said OneThread.
type Domain struct {
	handle
	fabric *Fabric
	info   *Info
	raw    cgo.Domain
	keys   atomic.Uint64

	deferred domainDeferred
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
	return d.close(func() error {
		if err := fail("fi_close of domain", d.provider, int(d.raw.Close())); err != nil {
			return err
		}
		d.deferred.release()
		return nil
	})
}
