package fabric

import (
	"cmp"
	"strings"

	"github.com/weft-go/weft/cgo"
)

// closeRaw closes the endpoint in libfabric. ofi_rxm and net (1.17) then look into the
// endpoint's address vector and die of SIGSEGV if none was bound: one that was
// opened and never enabled gets one for that.
func (e *Endpoint) closeRaw() cgo.Code {
	if e.severed && !e.hungUp {
		return 0
	}
	missed := e.turn == nil && e.Info().Endpoint() == ReliableDatagram && !e.hasVector() &&
		(strings.HasSuffix(e.provider, ";ofi_rxm") || e.provider == "net")
	if !missed {
		open := acceptedBy(e)
		closes := e.raw.Close
		if e.hasInner() {
			closes = func() cgo.Code { return e.raw.CloseInner(e.neighbour.stayed) }
		}
		closed := e.domain.lingering.ends(e)
		code := closes()
		closed(code == 0)
		if code == 0 {
			open.closeLeft()
			e.injected.close()
			e.fetching.end()
		}
		return code
	}
	v, code := e.domain.raw.OpenAddressVectorConfig(cgo.AddressVectorConfig{Type: uint32(cmp.Or(e.domain.info.AddressVector(), AddressTable))})
	if code != 0 {
		return code
	}
	if code := e.raw.BindAddressVector(v); code != 0 {
		v.Close()
		return code
	}
	code = e.raw.Close()
	v.Close()
	return code
}

// hasVector says whether an address vector was bound.
func (e *Endpoint) hasVector() bool {
	for _, p := range e.parents {
		if p.kind == "address vector" {
			return true
		}
	}
	return false
}

// hasInner says whether libfabric looks into memory of the endpoint that it has freed.
func (e *Endpoint) hasInner() bool {
	return core(e.provider) == "efa" && e.Info().Endpoint() == ReliableDatagram && LibraryVersion().Major < 2
}

// watchWithinHost has what the endpoint does within its host end, which libfabric 1.17 does not
// see to.
func (e *Endpoint) watchWithinHost() error {
	if v := LibraryVersion(); !e.hasInner() || v.Minor != 17 {
		return nil
	}
	code := e.raw.WatchWithinHost()
	if code == cgo.NoSystem {
		// There is no shm inside.
		return nil
	}
	return fail("fi_endpoint", e.provider, int(code))
}
