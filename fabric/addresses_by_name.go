package fabric

import (
	"fmt"
	"strconv"

	"github.com/weft-go/weft/cgo"
)

// InsertService makes the peer known that is bound to a host, by name or
// address, and a service, by number or name. Looking names up may block.
// ErrNotSupported says that addresses here have no hosts, ErrInvalid that one of
// the two is empty.
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
	if err := v.metByName(peer); err != nil {
		return AddressAny, err
	}
	return Address(peer), nil
}

// metByName is met for a peer whose address libfabric has found.
func (v *AddressVector) metByName(peer uint64) error {
	var address [256]byte
	n, code := v.raw.Lookup(peer, address[:])
	if code != 0 {
		if v.peers[Address(peer)] == 0 {
			v.raw.RemoveMany([]uint64{peer})
		}
		return fail("fi_av_lookup", v.provider, int(code))
	}
	v.met(Address(peer), address[:min(n, len(address))])
	return nil
}

func (v *AddressVector) checkService(op, host, service string) error {
	if host == "" || service == "" || len(host)+len(service) > longestAddress {
		return v.invalid(op, "it needs a host and a service")
	}
	if hasZero(host, service) {
		return v.invalid(op, zeroByte)
	}
	return nil
}

// mostSymmetric bounds what one call of InsertSymmetric can ask for.
const mostSymmetric = 1 << 20

// InsertSymmetric makes the peers known that are bound to hosts and services
// that count up from the ones given: to services, of the first host, then of
// the next. There are hosts times services of them, 2^20 at most. The result for
// each is on its own, as with InsertAll. The error of the call is ErrInvalid for
// other numbers, or as that of InsertService.
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
	codes := make([]int32, len(peers))
	v.befriend(peers, codes, inserted)
	results := make([]Inserted, len(peers))
	for i, peer := range peers {
		if peer == cgo.NoAddress || inserted == 0 {
			results[i] = Inserted{AddressAny, v.notInserted(0, codes[i])}
			continue
		}
		results[i] = v.insertedByName(peer)
	}
	return results, nil
}

func (v *AddressVector) insertedByName(peer uint64) Inserted {
	if err := v.metByName(peer); err != nil {
		return Inserted{AddressAny, err}
	}
	return Inserted{Address: Address(peer)}
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
			results = append(results, v.insertedByName(peer))
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
