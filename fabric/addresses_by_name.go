package fabric

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/weft-go/weft/cgo"
)

// InsertService makes the peer known that is bound to a host, by name or
// address, and a service, a port from 1 to 65535 by number or name. Looking names up may
// block. ErrNotSupported says that addresses here have no hosts, ErrInvalid that there is
// no such service or cannot be such a host. That a host is not found is an error of the
// provider's choice.
//
// Implements: int fi_av_insertsvc(...)
func (v *AddressVector) InsertService(host, service string) (Address, error) {
	if err := v.enter(); err != nil {
		return AddressAny, err
	}
	defer v.leave()
	port, err := v.portOf("fi_av_insertsvc", host, service)
	if err != nil {
		return AddressAny, err
	}
	peer, code := v.raw.InsertService(host, strconv.Itoa(port))
	if code != 0 {
		return AddressAny, v.noService("fi_av_insertsvc", code, host, service)
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

// longestHost is the length of the longest name of DNS.
const longestHost = 255

// portOf is the number of a service, of a host that can be one. libfabric cuts numbers off,
// and not all of it knows names.
func (v *AddressVector) portOf(op, host, service string) (int, error) {
	const last = 1<<16 - 1
	switch {
	case host == "" || service == "":
		return 0, v.invalid(op, "it needs a host and a service")
	case len(host) > longestHost || len(service) > longestHost:
		return 0, v.invalid(op, "the name of a host or a service has at most "+strconv.Itoa(longestHost)+" bytes")
	case hasZero(host, service):
		return 0, v.invalid(op, zeroByte)
	}
	port, err := strconv.Atoi(service)
	if err != nil {
		port, _ = net.LookupPort("tcp", service)
	}
	if port < 1 || port > last {
		return 0, v.invalid(op, strconv.Quote(service)+" is no port from 1 to "+strconv.Itoa(last)+", and no name of one")
	}
	return port, nil
}

// noService is why libfabric has no address for a host and a service, as far as it says.
func (v *AddressVector) noService(op string, code cgo.Code, host, service string) error {
	if code == cgo.NoSystem {
		return &Error{Op: op, Provider: v.provider, Errno: Errno(code), Detail: "addresses here have no hosts and services"}
	}
	return &Error{
		Op: op, Provider: v.provider, Errno: Errno(code),
		Detail: "the provider has no address of " + v.format.String() + " for the host " + strconv.Quote(host) + " and the service " + strconv.Quote(service),
	}
}

// mostPeers bounds for how many a vector or a set is opened, and how many one call of
// InsertSymmetric makes known.
const mostPeers = 1 << 20

// InsertSymmetric makes the peers known that are bound to hosts and services
// that count up from the ones given: to services, of the first host, then of
// the next. A host by name counts by the digits at its end. There are hosts times
// services of them, 2^20 at most. The result for each is on its own, as with InsertAll.
// The error of the call is ErrInvalid for other numbers, and where they go beyond the last
// port or address, or as that of InsertService.
//
// Implements: int fi_av_insertsym(...)
func (v *AddressVector) InsertSymmetric(host string, hosts int, service string, services int) ([]Inserted, error) {
	if err := v.enter(); err != nil {
		return nil, err
	}
	defer v.leave()
	port, err := v.portOf("fi_av_insertsym", host, service)
	if err != nil {
		return nil, err
	}
	if hosts < 1 || services < 1 || hosts > mostPeers/services {
		return nil, v.invalid("fi_av_insertsym", "hosts times services is 1 to "+strconv.Itoa(mostPeers))
	}
	if _, ok := countUpHost(host, hosts-1); !ok || port+services > 1<<16 {
		return nil, v.invalid("fi_av_insertsym", "there are no "+strconv.Itoa(hosts)+" hosts from "+host+" on, or no "+
			strconv.Itoa(services)+" services from "+strconv.Itoa(port)+" on")
	}
	if _, err := netip.ParseAddr(host); err != nil || core(v.provider) == "sockets" {
		return v.insertCounting(host, hosts, port, services), nil
	}
	peers := make([]uint64, hosts*services)
	inserted, code := v.raw.InsertSymmetric(host, hosts, strconv.Itoa(port), services, peers)
	if code != 0 {
		return nil, v.noService("fi_av_insertsym", code, host, service)
	}
	codes := make([]int32, len(peers))
	v.befriend(peers, codes, inserted)
	results := make([]Inserted, len(peers))
	for i, peer := range peers {
		if peer == cgo.NoAddress || inserted == 0 {
			results[i] = Inserted{AddressAny, v.notInserted("fi_av_insertsym", 0, codes[i])}
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
// results to the wrong places, some of them beyond the end, and that of tcp does not count
// the services of a host by name.
func (v *AddressVector) insertCounting(host string, hosts, port, services int) []Inserted {
	results := make([]Inserted, 0, hosts*services)
	for h := range hosts {
		host, _ := countUpHost(host, h)
		for s := range services {
			service := strconv.Itoa(port + s)
			peer, code := v.raw.InsertService(host, service)
			if code != 0 {
				results = append(results, Inserted{AddressAny, v.noService("fi_av_insertsym", code, host, service)})
				continue
			}
			results = append(results, v.insertedByName(peer))
		}
	}
	return results
}

// countUpHost adds to an address, or to the number at the end of a name. It says whether
// there is such an address.
func countUpHost(host string, n int) (string, bool) {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return countUp(host, n), true
	}
	b := a.AsSlice()
	for i := len(b) - 1; i >= 0; i-- {
		n += int(b[i])
		b[i] = byte(n)
		n >>= 8
	}
	sum, _ := netip.AddrFromSlice(b)
	return sum.WithZone(a.Zone()).String(), n == 0
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
