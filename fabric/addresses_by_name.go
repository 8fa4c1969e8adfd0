package fabric

import (
	"fmt"
	"strconv"

	"github.com/weft-go/weft/cgo"
)

// InsertService makes the peer known that is bound to a host, by name or
// address, and a service, by number or name. Looking names up may block.
// ErrNotSupported says that addresses here have no hosts.
//
// Implements: int fi_av_insertsvc(...)
func (v *AddressVector) InsertService(host, service string) (Address, error) {
	if err := v.enter(); err != nil {
		return AddressAny, err
	}
	defer v.leave()
	if err := v.checkService("fi_av_insertsvc", host, service); err != nil {
		return AddressAny, err
	}
	peer, code := v.raw.InsertService(host, service)
	if code != 0 {
		return AddressAny, fail("fi_av_insertsvc", v.provider, int(code))
	}
	v.peers[Address(peer)]++
	return Address(peer), nil
}

func (v *AddressVector) checkService(op, host, service string) error {
	if host == "" || service == "" || len(host)+len(service) > longestAddress {
		return v.invalid(op, "it needs a host and a service")
	}
	return nil
}

// mostSymmetric bounds what one call of InsertSymmetric can ask for.
const mostSymmetric = 1 << 20

// InsertSymmetric makes the peers known that are bound to hosts and services
// that count up from the ones given: to services, of the first host, then of
// the next. The result for each is on its own, as with InsertAll.
//
// Implements: int fi_av_insertsym(...)
func (v *AddressVector) InsertSymmetric(host string, hosts int, service string, services int) ([]Inserted, error) {
	if err := v.enter(); err != nil {
		return nil, err
	}
	defer v.leave()
	if err := v.checkService("fi_av_insertsym", host, service); err != nil {
		return nil, err
	}
	if hosts < 1 || services < 1 || hosts > mostSymmetric/services {
		return nil, v.invalid("fi_av_insertsym", "hosts times services is 1 to "+strconv.Itoa(mostSymmetric))
	}
	if core(v.provider) == "sockets" {
		return v.insertCounting(host, hosts, service, services)
	}
	peers := make([]uint64, hosts*services)
	inserted, code := v.raw.InsertSymmetric(host, hosts, service, services, peers)
	if code != 0 {
		return nil, fail("fi_av_insertsym", v.provider, int(code))
	}
	results := make([]Inserted, len(peers))
	for i, peer := range peers {
		if peer == cgo.NoAddress || inserted == 0 {
			results[i] = Inserted{AddressAny, v.notInserted(0, 0)}
			continue
		}
		v.peers[Address(peer)]++
		results[i] = Inserted{Address: Address(peer)}
	}
	return results, nil
}

// insertCounting does what fi_av_insertsym should: that of sockets writes its
// results to the wrong places, some of them beyond the end.
func (v *AddressVector) insertCounting(host string, hosts int, service string, services int) ([]Inserted, error) {
	results := make([]Inserted, 0, hosts*services)
	for h := range hosts {
		for s := range services {
			peer, code := v.raw.InsertService(countUp(host, h), countUp(service, s))
			if code != 0 {
				results = append(results, Inserted{AddressAny, fail("fi_av_insertsym", v.provider, int(code))})
				continue
			}
			v.peers[Address(peer)]++
			results = append(results, Inserted{Address: Address(peer)})
		}
	}
	return results, nil
}

// countUp adds to the number at the end of a name, which keeps its width; a
// name without one is the same for all.
func countUp(name string, n int) string {
	digits := len(name)
	for digits > 0 && len(name)-digits < 18 && name[digits-1] >= '0' && name[digits-1] <= '9' {
		digits--
	}
	number, err := strconv.Atoi(name[digits:])
	if err != nil {
		return name
	}
	return name[:digits] + fmt.Sprintf("%0*d", len(name)-digits, number+n)
}
