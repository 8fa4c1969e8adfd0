package fabric_test

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// site is a domain with two endpoints that know each other and share an event
// queue.
type site struct {
	info   *fabric.Info
	fabric *fabric.Fabric
	domain *fabric.Domain
	events *fabric.EventQueue
	a, b   *station
}

// openDomain opens the first thing that answers the hints; the test is skipped,
// and counted, where there is none.
func openDomain(t *testing.T, hints fabric.Hints) *site {
	t.Helper()
	hints.Source = sourceOn(hints.Provider)
	hints.Endpoint, hints.OneThread = fabric.ReliableDatagram, true
	infos, err := fabric.Discover(hints)
	testenv.Need(t, hints.Provider+" with "+hints.Capabilities.String()+", memory mode "+hints.MemoryMode.String(), err)
	s := &site{info: infos[0]}
	s.fabric, s.domain = partsOf(t, s.info)
	s.events = eventsOf(t, s.fabric)
	return s
}

// openSite opens a domain and its two endpoints, with counters bound to each.
func openSite(t *testing.T, hints fabric.Hints, forA, forB []fabric.CounterBinding) *site {
	t.Helper()
	s := openDomain(t, hints)
	s.enable(t, forA, forB)
	return s
}

func (s *site) enable(t *testing.T, forA, forB []fabric.CounterBinding) {
	t.Helper()
	s.a, s.b = s.open(t, forA), s.open(t, forB)
	s.a.peer, s.b.peer = s.a.insert(t, s.b), s.b.insert(t, s.a)
}

func (s *site) open(t *testing.T, counters []fabric.CounterBinding) *station {
	t.Helper()
	p := &station{info: s.info, domain: s.domain}
	p.q, p.v, p.e = queueOf(t, s.domain, 512), vectorOf(t, s.domain), endpointOf(t, s.domain)
	require.NoError(t, p.e.EnableWith(fabric.Bindings{Vector: p.v, Send: p.q, Receive: p.q, Events: s.events, Counters: counters}))
	return p
}

// rmaHints are those of tests that reach into a peer's memory.
func rmaHints(provider string) fabric.Hints {
	return fabric.Hints{
		Provider: provider, MemoryMode: everyMemoryMode,
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.RemoteMemory,
	}
}

// arena maps memory that is gone at the end of the test.
func arena(t *testing.T, size int) *fabric.Arena {
	t.Helper()
	a, err := fabric.NewArena(size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// register registers memory until the end of the test.
func register(t *testing.T, d *fabric.Domain, c fabric.RegionConfig, buffers ...[]byte) *fabric.Region {
	t.Helper()
	r, err := d.RegisterMemory(c, buffers...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func at(t *testing.T, r *fabric.Region, offset, length int) fabric.Remote {
	t.Helper()
	remote, err := r.Remote()
	require.NoError(t, err)
	m, err := remote.At(uint64(offset), uint64(length))
	require.NoError(t, err)
	return m
}

func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func TestRegionEndsWithClose(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openDomain(t, rmaHints(provider))
		memory := arena(t, 4096).Bytes()
		r, err := s.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory)
		require.NoError(t, err)
		require.ErrorIs(t, s.domain.Close(), fabric.ErrBusy)
		require.EqualValues(t, 4096, r.Len())
		require.Equal(t, fabric.AccessAll, r.Access())
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
		_, err = r.Remote()
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = r.RemoteOf(memory)
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, r.Enable(), net.ErrClosed)
		require.ErrorIs(t, r.Refresh(), net.ErrClosed)
		require.Zero(t, r.Descriptor())
	})
}

func TestRegionsThatCannotBe(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openDomain(t, rmaHints(provider))
		memory := arena(t, 4096).Bytes()
		many := make([][]byte, 40)
		for i := range many {
			many[i] = memory[i : i+1]
		}
		for name, c := range map[string]struct {
			config  fabric.RegionConfig
			buffers [][]byte
		}{
			"no buffer":        {fabric.RegionConfig{}, nil},
			"empty buffer":     {fabric.RegionConfig{}, [][]byte{{}}},
			"too many buffers": {fabric.RegionConfig{}, many},
			"unknown access":   {fabric.RegionConfig{Access: 1 << 62}, [][]byte{memory}},
			"offset":           {fabric.RegionConfig{Offset: 1}, [][]byte{memory}},
		} {
			_, err := s.domain.RegisterMemory(c.config, c.buffers...)
			require.ErrorIs(t, err, fabric.ErrInvalid, name)
		}
		r := register(t, s.domain, fabric.RegionConfig{}, memory[:2048])
		_, err := r.RemoteOf(memory[2000:2049])
		require.ErrorIs(t, err, fabric.ErrInvalid)
		require.ErrorIs(t, r.Refresh(memory[2000:2049]), fabric.ErrInvalid)
		require.NoError(t, r.Refresh())
		require.NoError(t, r.Refresh(memory[:100], memory[1000:2048]))
		require.NoError(t, r.Enable(), "where regions are not bound first, they are usable at once")
		require.ErrorIs(t, r.BindCounter(nil), fabric.ErrInvalid)
		require.ErrorIs(t, r.BindEndpoint(nil), fabric.ErrInvalid)
		err = r.BindEndpoint(endpointOf(t, s.domain))
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		require.ErrorContains(t, err, "FI_MR_ENDPOINT")
	})
}

func TestRemoteRegionArithmetic(t *testing.T) {
	r := fabric.RemoteRegion{Address: 1000, Length: 100, Key: 7}
	for _, c := range []struct {
		offset, length uint64
		ok             bool
	}{
		{0, 100, true},
		{100, 0, true},
		{99, 1, true},
		{99, 2, false},
		{101, 0, false},
		{^uint64(0), 1, false},
		{1, ^uint64(0), false},
	} {
		m, err := r.At(c.offset, c.length)
		if c.ok {
			require.NoError(t, err)
			require.Equal(t, fabric.Remote{Address: 1000 + c.offset, Key: 7}, m)
		} else {
			require.ErrorIs(t, err, fabric.ErrInvalid)
		}
	}
	_, err := fabric.RemoteRegion{Address: ^uint64(0) - 1, Length: 100}.At(50, 1)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	_, err = fabric.RemoteRegion{Length: 100, RawKey: []byte{1}}.At(0, 1)
	require.ErrorIs(t, err, fabric.ErrInvalid)
}

func TestRemoteRegionAsBytes(t *testing.T) {
	for _, r := range []fabric.RemoteRegion{
		{}, {Address: 1, Length: 2, Key: 3}, {Address: ^uint64(0), Length: 5, Key: 1 << 63, RawKey: bytes.Repeat([]byte{9}, 256)},
	} {
		b, err := r.MarshalBinary()
		require.NoError(t, err)
		var back fabric.RemoteRegion
		require.NoError(t, back.UnmarshalBinary(b))
		require.Equal(t, r, back)
	}
	var r fabric.RemoteRegion
	for _, n := range []int{0, 23, 24 + 257, 1 << 20} {
		require.ErrorIs(t, r.UnmarshalBinary(make([]byte, n)), fabric.ErrInvalid)
	}
	_, err := fabric.RemoteRegion{RawKey: make([]byte, 257)}.MarshalBinary()
	require.ErrorIs(t, err, fabric.ErrInvalid)
}

// No provider here has raw keys.
func TestRawKeys(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openDomain(t, rmaHints(provider))
		_, err := s.domain.MapRemote(fabric.RemoteRegion{Length: 1, RawKey: []byte{1, 2, 3}})
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		_, err = s.domain.MapRemote(fabric.RemoteRegion{Length: 1, RawKey: make([]byte, 1000)})
		require.ErrorIs(t, err, fabric.ErrInvalid)
		m, err := s.domain.MapRemote(fabric.RemoteRegion{Length: 1, Key: 5})
		require.NoError(t, err)
		require.ErrorIs(t, s.domain.Close(), fabric.ErrBusy)
		require.NoError(t, m.Close())
	})
}

func TestAccessInWords(t *testing.T) {
	require.Equal(t, "none", fabric.Access(0).String())
	require.Equal(t, "send, receive", fabric.AccessMessages.String())
	require.Equal(t, "send, receive, read, write, remote read, remote write", fabric.AccessAll.String())
	require.Equal(t, "collective, 0x4000000000000000", (fabric.AccessCollective | 1<<62).String())
	require.True(t, fabric.AccessAll.Has(fabric.AccessRead|fabric.AccessSend))
	require.False(t, fabric.AccessMessages.Has(fabric.AccessRead|fabric.AccessSend))
}
