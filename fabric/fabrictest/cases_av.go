package fabrictest

import (
	"bytes"
	"errors"
	"math"
	"net"
	"strconv"
	"strings"

	"github.com/weft-go/weft/fabric"
)

var addressCases = []named{
	{"insert and remove", insertAndRemove},
	{"table", addressTable},
	{"text", addressText},
	{"service", insertService},
	{"symmetric", insertSymmetric},
}

// namesOf opens a site with as many endpoints, and returns their addresses.
func namesOf(t *trial, count int) (s *site, names [][]byte) {
	t.Helper()
	s = openSite(t, t.hints(fabric.ReliableDatagram, bothMessages))
	for range count {
		name, err := s.open(t, s.info, fabric.Bindings{}).e.Name()
		noError(t, err)
		names = append(names, name)
	}
	return s, names
}

// bare is an address without its scheme, which shm of libfabric 2.x does not
// give back.
func bare(address []byte) string {
	return string(bytes.TrimPrefix(address, []byte("fi_shm://")))
}

func looksUp(t *trial, v *fabric.AddressVector, peer fabric.Address, want []byte) {
	t.Helper()
	got, err := v.Lookup(peer)
	noError(t, err)
	equal(t, bare(want), bare(got))
}

// Addresses are inserted many at once, wrong ones among them, looked up, removed
// and inserted again.
func insertAndRemove(t *trial) {
	s, names := namesOf(t, 5)
	v := s.vector(t, fabric.AddressVectorConfig{})
	addresses := [][]byte{names[0], names[1], {1, 2, 3}, names[2], nil, names[3], names[4]}
	results, err := v.InsertAll(addresses)
	noError(t, err)
	equal(t, len(addresses), len(results))
	seen := map[fabric.Address]bool{}
	var peers []fabric.Address
	for i, r := range results {
		if len(addresses[i]) < 4 {
			errorIs(t, r.Err, fabric.ErrInvalid)
			equal(t, fabric.AddressAny, r.Address)
			continue
		}
		noError(t, r.Err)
		isTrue(t, !seen[r.Address], "an address for each")
		seen[r.Address] = true
		peers = append(peers, r.Address)
		looksUp(t, v, r.Address, addresses[i])
	}
	equal(t, 5, v.Len())
	none, err := v.InsertAll(nil)
	noError(t, err)
	equal(t, 0, len(none))

	errorIs(t, v.RemoveAll([]fabric.Address{peers[0], 99999}), fabric.ErrNotFound)
	errorIs(t, v.RemoveAll([]fabric.Address{peers[0], peers[0]}), fabric.ErrInvalid)
	equal(t, 5, v.Len(), "none was removed")
	noError(t, v.RemoveAll(nil))
	noError(t, v.RemoveAll(peers[:3]))
	equal(t, 2, v.Len())
	_, err = v.Lookup(peers[0])
	errorIs(t, err, fabric.ErrNotFound)
	errorIs(t, v.Remove(peers[0]), fabric.ErrNotFound)
	looksUp(t, v, peers[4], names[4])
	again, err := v.Insert(names[0])
	noError(t, err, "after its removal")
	looksUp(t, v, again, names[0])
}

// A table counts from 0, whatever it was told of its size.
func addressTable(t *trial) {
	s, names := namesOf(t, 3)
	v := s.vector(t, fabric.AddressVectorConfig{Peers: 100, PeersPerNode: 4})
	equal(t, fabric.AddressTable, v.Type())
	for i, name := range names {
		peer, err := v.Insert(name)
		noError(t, err)
		equal(t, fabric.Address(i), peer)
	}
}

// An address in words has what distinguishes it.
func addressText(t *trial) {
	s, names := namesOf(t, 2)
	v := s.vector(t, fabric.AddressVectorConfig{})
	one, err := v.Text(names[0])
	t.need("fi_av_straddr", err)
	other, err := v.Text(names[1])
	noError(t, err)
	isTrue(t, one != "" && one != other, "%q and %q", one, other)
	if s.info.AddressFormat() == fabric.FormatIPv4 {
		port := int(names[0][2])<<8 | int(names[0][3])
		isTrue(t, strings.HasSuffix(one, net.JoinHostPort(net.IP(names[0][4:8]).String(), strconv.Itoa(port))), one)
	}
	_, err = v.Text([]byte{1})
	errorIs(t, err, fabric.ErrInvalid)
}

// host is a host that has a name or address in the provider's terms.
func (t *trial) host() string {
	if t.provider.Source == "" {
		return "127.0.0.1"
	}
	return t.provider.Source
}

// An address is found by host and service.
func insertService(t *trial) {
	s, _ := namesOf(t, 0)
	v := s.vector(t, fabric.AddressVectorConfig{})
	for _, wrong := range [][2]string{{"", "4000"}, {t.host(), ""}, {t.host() + "\x00.example", "4000"}, {t.host(), "4000\x001"}} {
		_, err := v.InsertService(wrong[0], wrong[1])
		errorIs(t, err, fabric.ErrInvalid)
	}
	peer, err := v.InsertService(t.host(), "4711")
	t.need("fi_av_insertsvc", err)
	address, err := v.Lookup(peer)
	noError(t, err)
	text, err := v.Text(address)
	noError(t, err)
	isTrue(t, strings.Contains(text, ":4711"), text)
	_, err = v.InsertService(t.host(), "no such service")
	anError(t, err)
	equal(t, 1, v.Len())
}

// Addresses of many hosts and services are inserted by the first of them.
func insertSymmetric(t *trial) {
	s, _ := namesOf(t, 0)
	v := s.vector(t, fabric.AddressVectorConfig{})
	for _, counts := range [][2]int{{0, 1}, {1, 0}, {-1, 1}, {min(1<<40, math.MaxInt), min(1<<40, math.MaxInt)}, {1 << 20, 2}} {
		_, err := v.InsertSymmetric("127.0.0.1", counts[0], "4000", counts[1])
		errorIs(t, err, fabric.ErrInvalid)
	}
	results, err := v.InsertSymmetric("127.0.0.1", 2, "4000", 3)
	if errors.Is(err, fabric.ErrNotSupported) {
		t.need("fi_av_insertsym", err)
	}
	noError(t, err)
	seen := map[string]bool{}
	for _, r := range results {
		noError(t, r.Err)
		address, err := v.Lookup(r.Address)
		noError(t, err)
		text, err := v.Text(address)
		noError(t, err)
		seen[text[max(0, len(text)-len("127.0.0.1:4000")):]] = true
	}
	want := map[string]bool{}
	for host := 1; host <= 2; host++ {
		for service := 4000; service < 4003; service++ {
			want[net.JoinHostPort("127.0.0."+strconv.Itoa(host), strconv.Itoa(service))] = true
		}
	}
	equal(t, want, seen)
}
