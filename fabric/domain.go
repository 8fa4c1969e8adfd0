package fabric

import (
	"errors"
	"sync/atomic"

	"github.com/weft-go/weft/cgo"
)

// Domain is an open interface or device (fid_domain). Its methods may be called
// from any goroutine. But if the hints said OneThread, it may be used by one
// goroutine at a time, together with everything that was opened in it.
type Domain struct {
	handle
	fabric *Fabric
	info   *Info
	raw    cgo.Domain
	keys   atomic.Uint64

	deferred domainDeferred
}

// OpenDomain opens the domain that the info names. What is opened in it is as the
// info has it: the type of endpoints, the memory mode and so on.
//
// Implements: int fi_domain(...)
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
	endedArenas.opened(d)
	return d, nil
}

// Close closes the domain. ErrBusy says what is still open in it.
//
// Implements: int fi_close(...)
func (d *Domain) Close() error {
	err := d.close(func() error {
		if err := fail("fi_close of domain", d.provider, int(d.raw.Close())); err != nil {
			return err
		}
		d.deferred.release()
		endedArenas.closed(d)
		return nil
	})
	return errors.Join(err, onThisHost.endAll(d))
}

func (d *Domain) closed() bool { return d.users.Load()&closedBit != 0 }
