package fabric

import (
	"github.com/weft-go/weft/cgo"
)

// Fabric is an open network, of which everything else is a part (fid_fabric). Its
// methods may be called from any goroutine.
type Fabric struct {
	handle
	raw cgo.Fabric
}

// OpenFabric opens the network that the info names. Any goroutine may call it.
// ErrInvalid says that there is no info, ErrNotSupported that the environment has libfabric do
// what could end the process: FI_HOOK, and for ofi_rxm FI_OFI_RXM_USE_RNDV_WRITE.
//
// Implements: int fi_fabric(...)
func (i *Info) OpenFabric() (*Fabric, error) {
	if err := i.there("fi_fabric"); err != nil {
		return nil, err
	}
	if err := i.fits(); err != nil {
		return nil, err
	}
	setup.Lock()
	raw, code := i.openWithRoom()
	setup.Unlock()
	if code != 0 {
		return nil, fail("fi_fabric", i.Provider(), int(code))
	}
	f := &Fabric{raw: raw}
	f.open("fabric", i.Provider())
	return f, nil
}

// Close closes the fabric. ErrBusy says what is still open in it.
//
// Implements: int fi_close(...)
func (f *Fabric) Close() error {
	return f.close(func() error { return fail("fi_close of fabric", f.provider, int(inTurn(f.raw.Close))) })
}
