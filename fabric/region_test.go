package fabric_test

import (
	"bytes"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

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
	if hints.Provider != "shm" {
		hints.Source = "127.0.0.1"
	}
	hints.Endpoint, hints.OneThread = fabric.ReliableDatagram, true
	infos, err := fabric.Discover(hints)
	testenv.Need(t, hints.Provider+" with "+hints.Capabilities.String()+", memory mode "+hints.MemoryMode.String(), err)
	s := &site{info: infos[0]}
	s.fabric, err = s.info.OpenFabric()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.fabric.Close()) })
	s.domain, err = s.fabric.OpenDomain(s.info)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.domain.Close()) })
	s.events, err = s.fabric.OpenEventQueue()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.events.Close()) })
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
	var err error
	p.q, err = s.domain.OpenCompletionQueue(512)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.q.Close()) })
	p.v, err = s.domain.OpenAddressVector()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.v.Close()) })
	p.e, err = s.domain.OpenEndpoint()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.e.Close()) })
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

// What Remote says is right in every memory mode that a provider offers: with
// virtual addresses and with offsets, with keys of the provider's and of one's
// own.
func TestRemoteAccessInEveryMemoryMode(t *testing.T) {
	always := fabric.LocalRegistration | fabric.AllocatedMemory
	each(t, func(t *testing.T, provider string) {
		for _, mode := range []fabric.MemoryMode{
			0, fabric.VirtualAddresses, fabric.ProviderKeys, fabric.VirtualAddresses | fabric.ProviderKeys,
			always | fabric.VirtualAddresses | fabric.ProviderKeys,
		} {
			t.Run(strings.ReplaceAll(mode.String(), " ", ""), func(t *testing.T) {
				hints := rmaHints(provider)
				hints.MemoryMode = mode
				s := openSite(t, hints, nil, nil)
				require.Zero(t, s.info.MemoryMode()&^mode, "what was not offered must not be asked for")
				const size = 3 * 4096
				there, here := arena(t, size).Bytes(), arena(t, size).Bytes()
				target := register(t, s.domain, fabric.RegionConfig{Access: fabric.AccessRemoteRead | fabric.AccessRemoteWrite}, there)
				source := register(t, s.domain, fabric.RegionConfig{Access: fabric.AccessRead | fabric.AccessWrite}, here)
				copy(here, counting(size))

				// What the peer is told travels as bytes.
				remote, err := target.Remote()
				require.NoError(t, err)
				told, err := remote.MarshalBinary()
				require.NoError(t, err)
				var heard fabric.RemoteRegion
				require.NoError(t, heard.UnmarshalBinary(told))
				mapped, err := s.domain.MapRemote(heard)
				require.NoError(t, err)
				defer func() { require.NoError(t, mapped.Close()) }()

				for _, part := range []struct{ from, length int }{{0, size}, {0, 1}, {4095, 2}, {size - 5, 5}, {100, 5000}} {
					clear(there)
					where, err := mapped.At(uint64(part.from), uint64(part.length))
					require.NoError(t, err)
					direct, err := target.RemoteOf(there[part.from:][:part.length])
					require.NoError(t, err)
					require.Equal(t, where, direct)
					mine := here[part.from:][:part.length]
					s.a.must(t, s.b, fabric.Op{Kind: fabric.OpWrite, Peer: s.a.peer, Buf: mine, Descriptor: source.Descriptor(), Remote: where, Flags: fabric.DeliveryComplete, Fixed: true})
					require.NoError(t, s.a.await(t, s.b).Err)
					require.True(t, bytes.Equal(counting(size)[part.from:][:part.length], there[part.from:][:part.length]), "written")
					require.Equal(t, part.length, size-bytes.Count(there[:part.from], []byte{0})-bytes.Count(there[part.from+part.length:], []byte{0}), "and nothing else")

					clear(mine)
					s.a.must(t, s.b, fabric.Op{Kind: fabric.OpRead, Peer: s.a.peer, Buf: mine, Descriptor: source.Descriptor(), Remote: where, Fixed: true})
					require.NoError(t, s.a.await(t, s.b).Err)
					require.True(t, bytes.Equal(counting(size), here), "read back")
				}
			})
		}
	})
}

// A peer that uses a wrong key, goes beyond the region or does what it was not
// registered for gets an error, and nothing changes. shm (1.17) refuses too, but
// the operation does not end, and after a read nor does any other to that peer;
// and it does not look at all with virtual addresses, which is why the test does
// without them there.
func TestRemoteAccessIsChecked(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		tells := provider != "shm"
		for _, c := range []struct {
			name   string
			access fabric.Access
			kind   fabric.OpKind
			change func(*fabric.Remote)
		}{
			{"wrong key, write", fabric.AccessAll, fabric.OpWrite, func(r *fabric.Remote) { r.Key += 1000 }},
			{"wrong key, read", fabric.AccessAll, fabric.OpRead, func(r *fabric.Remote) { r.Key += 1000 }},
			{"beyond the end, write", fabric.AccessAll, fabric.OpWrite, func(r *fabric.Remote) { r.Address += 4096 - 63 }},
			{"beyond the end, read", fabric.AccessAll, fabric.OpRead, func(r *fabric.Remote) { r.Address += 4096 - 63 }},
			{"only to be read, write", fabric.AccessRemoteRead, fabric.OpWrite, func(*fabric.Remote) {}},
			{"only to be written, read", fabric.AccessRemoteWrite, fabric.OpRead, func(*fabric.Remote) {}},
		} {
			t.Run(c.name, func(t *testing.T) {
				hints := rmaHints(provider)
				// Without it, a write is complete before the peer has looked.
				flags := fabric.DeliveryComplete
				if !tells {
					hints.MemoryMode, flags = 0, 0
				}
				s := openSite(t, hints, nil, nil)
				memory, mine := arena(t, 3*4096).Bytes(), arena(t, 64).Bytes()[:64]
				for i := range memory {
					memory[i] = 0xaa
				}
				target := register(t, s.domain, fabric.RegionConfig{Access: c.access}, memory[4096:8192])
				source := register(t, s.domain, fabric.RegionConfig{Access: fabric.AccessAll}, mine)
				where := at(t, target, 0, 64)
				c.change(&where)
				op := s.a.post(t, s.b, fabric.Op{Kind: c.kind, Peer: s.a.peer, Buf: mine, Descriptor: source.Descriptor(), Remote: where, Flags: flags, Fixed: true})
				if tells {
					err := op.Err
					if op.Result == fabric.Posted {
						err = s.a.await(t, s.b).Err
					}
					require.Error(t, err)
				} else {
					for range 1000 {
						s.a.turn(t, nil)
						s.b.turn(t, nil)
					}
				}
				require.Equal(t, 3*4096, bytes.Count(memory, []byte{0xaa}))
				require.Equal(t, 64, bytes.Count(mine, []byte{0}))
			})
		}
	})
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
	})
}

func TestKeys(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		hints := rmaHints(provider)
		hints.MemoryMode &^= fabric.ProviderKeys
		s := openDomain(t, hints)
		memory := arena(t, 4096).Bytes()
		for _, key := range []uint64{0, 3, 1 << 40, ^uint64(0) - 1} {
			r := register(t, s.domain, fabric.RegionConfig{Access: fabric.AccessAll, Key: &key}, memory)
			require.Equal(t, key, at(t, r, 0, 1).Key)
			_, err := s.domain.RegisterMemory(fabric.RegionConfig{Key: &key}, memory)
			require.Error(t, err, "the key %d is in use", key)
		}
		// Keys that weft chooses go around those that the program has chosen.
		keys := map[uint64]bool{}
		for range 5 {
			keys[at(t, register(t, s.domain, fabric.RegionConfig{}, memory), 0, 1).Key] = true
		}
		require.Len(t, keys, 5)
		require.False(t, keys[3] || keys[0])
	})
}

// Several buffers are one region, where the provider takes them. sockets says it
// does, but lets peers reach the first one only.
func TestRegionOfSeveralBuffers(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openSite(t, rmaHints(provider), nil, nil)
		first, second := arena(t, 4096).Bytes(), arena(t, 4096).Bytes()
		r, err := s.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, first, second)
		if provider == "tcp" {
			require.ErrorIs(t, err, fabric.ErrInvalid)
			require.ErrorContains(t, err, "at most 1 buffers")
			return
		}
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		require.EqualValues(t, 8192, r.Len())
		mine := counting(100)
		s.a.must(t, s.b, fabric.Op{Kind: fabric.OpWrite, Peer: s.a.peer, Buf: mine, Remote: at(t, r, 10, 100), Flags: fabric.DeliveryComplete})
		require.NoError(t, s.a.await(t, s.b).Err)
		require.True(t, bytes.Equal(mine, first[10:110]))
		where, err := r.RemoteOf(second[:100])
		require.NoError(t, err)
		if s.info.MemoryMode()&fabric.VirtualAddresses != 0 {
			require.Equal(t, uint64(uintptr(unsafe.Pointer(&second[0]))), where.Address)
		} else {
			require.EqualValues(t, 4096, where.Address)
		}
	})
}

// Go memory stays where it is while it is registered.
func TestGoMemoryIsPinned(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openSite(t, rmaHints(provider), nil, nil)
		memory := make([]byte, 1<<16)
		r := register(t, s.domain, fabric.RegionConfig{Access: fabric.AccessAll}, memory)
		runtime.GC()
		mine := counting(1 << 16)
		s.a.must(t, s.b, fabric.Op{Kind: fabric.OpWrite, Peer: s.a.peer, Buf: mine, Remote: at(t, r, 0, len(mine)), Flags: fabric.DeliveryComplete})
		require.NoError(t, s.a.await(t, s.b).Err)
		require.True(t, bytes.Equal(mine, memory))
	})
}

// A counter of a region counts what peers write there.
func TestRegionCounter(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		hints := rmaHints(provider)
		hints.Capabilities |= fabric.RemoteMemoryEvents
		s := openSite(t, hints, nil, nil)
		c, err := s.domain.OpenCounter()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		memory := arena(t, 4096).Bytes()
		r, err := s.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll, Flags: fabric.RegionEvents}, memory)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Close()) })
		require.ErrorIs(t, r.BindCounter(nil), fabric.ErrInvalid)
		err = r.BindCounter(c)
		testenv.Need(t, provider+" with counters of regions", err)
		require.NoError(t, r.Enable())
		require.ErrorIs(t, c.Close(), fabric.ErrBusy)
		for range 3 {
			s.a.must(t, s.b, fabric.Op{Kind: fabric.OpWrite, Peer: s.a.peer, Buf: counting(8), Remote: at(t, r, 0, 8), Flags: fabric.DeliveryComplete})
			require.NoError(t, s.a.await(t, s.b).Err)
		}
		require.NoError(t, c.Wait(within(t, 30*time.Second), 3))
	})
}

// Regions belong to endpoints on special hardware only.
func TestRegionOfAnEndpoint(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openSite(t, rmaHints(provider), nil, nil)
		r := register(t, s.domain, fabric.RegionConfig{Access: fabric.AccessAll}, arena(t, 4096).Bytes())
		require.ErrorIs(t, r.BindEndpoint(nil), fabric.ErrInvalid)
		require.Error(t, r.BindEndpoint(s.a.e), "no provider here has this")
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
