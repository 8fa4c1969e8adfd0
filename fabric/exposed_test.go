package fabric_test

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testprocess"
)

// accesses are all ways in which the provider of efa asks its peer's for memory.
func accesses() map[string]fabric.Op {
	sum := func() *fabric.Atomic { return &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum} }
	ones := func(n int) []byte { return bytes.Repeat([]byte{1}, n) }
	fetching := func() *fabric.Atomic {
		return &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum, Result: make([]byte, 8)}
	}
	comparing := &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.CompareSwap, Result: make([]byte, 8), Compare: make([]byte, 8)}
	return map[string]fabric.Op{
		"write":                {Kind: fabric.OpWrite, Buf: ones(8)},
		"inject":               {Kind: fabric.OpWriteInject, Buf: ones(8)},
		"delivered write":      {Kind: fabric.OpWrite, Buf: ones(8), Flags: fabric.DeliveryComplete},
		"write with data":      {Kind: fabric.OpWrite, Buf: ones(8), Flags: fabric.Immediate, Immediate: 7},
		"long write":           {Kind: fabric.OpWrite, Buf: ones(longAccess)},
		"long delivered write": {Kind: fabric.OpWrite, Buf: ones(longAccess), Flags: fabric.DeliveryComplete},
		"read":                 {Kind: fabric.OpRead, Buf: make([]byte, 8)},
		"long read":            {Kind: fabric.OpRead, Buf: make([]byte, longAccess)},
		"atomic":               {Kind: fabric.OpAtomic, Buf: ones(8), Atomic: sum()},
		"delivered atomic":     {Kind: fabric.OpAtomic, Buf: ones(8), Atomic: sum(), Flags: fabric.DeliveryComplete},
		"atomic inject":        {Kind: fabric.OpAtomicInject, Buf: ones(8), Atomic: sum()},
		"fetching atomic":      {Kind: fabric.OpFetch, Buf: ones(8), Atomic: fetching()},
		"comparing atomic":     {Kind: fabric.OpCompare, Buf: ones(8), Atomic: comparing},
	}
}

// longAccess is what takes many packets.
const longAccess = 100_000

// asksPeer says whether the provider has the peer's do an access, and not the device.
func (s *station) asksPeer(t *testing.T, op *fabric.Op) bool {
	t.Helper()
	option := fabric.OptionEFAEmulatedRead
	switch {
	case op.Atomic != nil:
		return true
	case op.Kind != fabric.OpRead:
		option = fabric.OptionEFAEmulatedWrite
	case fabric.LibraryVersion().Major < 2:
		return os.Getenv("WEFT_EFA_RDMA") == "none"
	}
	if fabric.LibraryVersion().Major < 2 {
		return true
	}
	yes, err := s.e.BoolOption(option)
	require.NoError(t, err)
	return yes
}

// Whatever a peer asks for that it may not have, its target goes on as before, has what it
// had, and hears of it, or the peer does. Of atomic operations nobody hears.
func TestForbiddenAccess(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		forbidden := map[string]struct {
			access fabric.Access
			change func(*fabric.Remote)
		}{
			"wrong key":      {fabric.AccessAll, func(r *fabric.Remote) { r.Key += 1000 }},
			"beyond the end": {fabric.AccessAll, func(r *fabric.Remote) { r.Address += 2 * longAccess }},
			"before":         {fabric.AccessAll, func(r *fabric.Remote) { r.Address-- }},
			"last address":   {fabric.AccessAll, func(r *fabric.Remote) { r.Address = ^uint64(7) }},
			"no rights":      {fabric.AccessMessages, func(*fabric.Remote) {}},
		}
		some, _ := stations(t, "efa", fabric.Messages|fabric.RemoteMemory|fabric.Atomics)
		for name, f := range forbidden {
			for kind, op := range accesses() {
				asks := some.asksPeer(t, &op)
				if !asks && (name == "no rights" || op.Kind == fabric.OpWriteInject) {
					// The device knows keys and lengths, and nobody hears of an inject.
					continue
				}
				t.Run(name+"/"+kind, func(t *testing.T) {
					a, b := stations(t, "efa", fabric.Messages|fabric.RemoteMemory|fabric.Atomics)
					memory := make([]byte, longAccess)
					region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: f.access}, memory)
					require.NoError(t, err)
					t.Cleanup(func() { require.NoError(t, region.Close()) })
					op.Peer, op.Context = a.peer, 1
					op.Remote, err = region.RemoteOf(memory)
					require.NoError(t, err)
					_ = a.goesOn(t, b)
					a.mustForbidden(t, b, op, f.change)
					failure := a.goesOn(t, b)
					if asks {
						require.Equal(t, make([]byte, len(memory)), memory)
					}
					if op.Atomic != nil {
						return
					}
					require.Eventually(t, func() bool {
						_, _, err = b.events.Read()
						a.turn(t, nil)
						b.turn(t, nil)
						for _, c := range a.got {
							failure = errors.Join(failure, c.Err)
						}
						return err != nil || failure != nil
					}, 30*time.Second, time.Millisecond)
					if failure == nil {
						require.ErrorIs(t, err, syscall.EACCES)
						require.ErrorContains(t, err, "a peer asked for memory that it may not have")
					}
				})
			}
		}
	})
}

// Within a host, accesses go through shm, which does not refuse all that it should, and may
// leave them without an answer: the target goes on all the same, and both are closed.
func TestForbiddenAccessWithinHost(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		if !withinHost(t, "forbidden access", "^TestForbiddenAccessWithinHost$") {
			return
		}
		for _, access := range []fabric.Access{fabric.AccessAll, fabric.AccessMessages} {
			for kind, op := range accesses() {
				a, b := stations(t, "efa", fabric.Messages|fabric.RemoteMemory|fabric.Atomics)
				memory := make([]byte, longAccess)
				region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: access}, memory)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, region.Close()) })
				op.Peer = a.peer
				op.Remote, err = region.RemoteOf(memory)
				require.NoError(t, err)
				if access == fabric.AccessAll {
					op.Remote.Key += 1000
				}
				require.NoError(t, a.goesOn(t, b), kind)
				if kind == "delivered atomic" {
					require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrNotSupported)
					continue
				}
				a.must(t, b, op)
				require.NoError(t, b.goesOn(t, a), kind)
			}
		}
	})
}

// mustForbidden posts an access to a place that may be one that weft refuses.
func (s *station) mustForbidden(t *testing.T, other *station, op fabric.Op, change func(*fabric.Remote)) {
	t.Helper()
	where := op.Remote
	change(&where)
	op.Remote.Key = where.Key
	require.Eventually(t, func() bool {
		op = fabric.PostAnywhere(s.e, op, where.Address)
		s.turn(t, nil)
		other.turn(t, nil)
		return op.Result != fabric.Refused
	}, 30*time.Second, time.Millisecond)
	require.NoError(t, op.Err)
}

// What would end beyond the last address is refused before a peer that adds up where it ends
// takes it for the beginning of memory, and dies.
func TestRemoteMemoryBeyondLastAddress(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.RemoteMemory|fabric.Atomics)
		memory := make([]byte, longAccess)
		region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, region.Close()) })
		where, err := region.RemoteOf(memory)
		require.NoError(t, err)
		refused := func(op fabric.Op) {
			op = a.post(t, b, op)
			require.ErrorIs(t, op.Err, fabric.ErrInvalid)
			require.ErrorContains(t, op.Err, "ends beyond the last address")
		}
		for _, op := range accesses() {
			op.Peer, op.Remote = a.peer, where
			for _, before := range []uint64{1, uint64(len(op.Buf))} {
				op.Remote.Address = -before
				refused(op)
			}
			if op.Kind == fabric.OpRead || op.Kind == fabric.OpWrite {
				op.Remotes = []fabric.RemotePart{{Remote: op.Remote, Len: uint64(len(op.Buf))}}
				op.Remote = fabric.Remote{}
				refused(op)
			}
		}
		require.NoError(t, a.goesOn(t, b))
		require.Equal(t, make([]byte, len(memory)), memory)
	})
}

// goesOn has a message sent and received, and returns the failure of what else has
// completed meanwhile.
func (s *station) goesOn(t *testing.T, other *station) (failure error) {
	t.Helper()
	got := make([]byte, 8)
	other.must(t, s, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: 99})
	s.must(t, other, fabric.Op{Kind: fabric.OpSend, Peer: s.peer, Buf: []byte("messages"), Context: 98})
	for side, context := range map[*station]uint64{s: 98, other: 99} {
		peer := s
		if side == s {
			peer = other
		}
		for {
			c := side.await(t, peer)
			if c.Context == context {
				require.NoError(t, c.Err)
				break
			}
			failure = errors.Join(failure, c.Err)
		}
	}
	require.Equal(t, "messages", string(got))
	return failure
}

// Accesses that are on their way when their region is closed are those of nobody.
func TestRegionClosedUnderAccess(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		for kind, op := range accesses() {
			t.Run(kind, func(t *testing.T) {
				a, b := stations(t, "efa", fabric.Messages|fabric.RemoteMemory|fabric.Atomics)
				memory := make([]byte, longAccess)
				for range 5 {
					region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory)
					require.NoError(t, err)
					op.Peer, op.Context = a.peer, 1
					op.Remote, err = region.RemoteOf(memory)
					require.NoError(t, err)
					_ = a.goesOn(t, b)
					for range 4 {
						a.must(t, a, op)
					}
					require.NoError(t, region.Close())
					_ = a.goesOn(t, b)
				}
			})
		}
	})
}

// Memory of closed regions that accesses may go on in is kept, but not much of it.
func TestMemoryOfLingeringRegions(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		a, b := stations(t, "efa", fabric.Messages|fabric.RemoteMemory)
		const count, kept = 1500, 1024
		var freed atomic.Int32
		for i := range count {
			memory := new([longAccess]byte)
			runtime.SetFinalizer(memory, func(*[longAccess]byte) { freed.Add(1) })
			region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory[:])
			require.NoError(t, err)
			op := fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: make([]byte, longAccess), Flags: fabric.DeliveryComplete}
			op.Buf[i] = 1
			op.Remote, err = region.RemoteOf(memory[:])
			require.NoError(t, err)
			a.must(t, b, op)
			require.NoError(t, a.await(t, b).Err)
			require.Equal(t, op.Buf, memory[:])
			require.NoError(t, region.Close())
		}
		require.Eventually(t, func() bool {
			runtime.GC()
			return freed.Load() >= count-kept-1
		}, time.Minute, time.Millisecond)
	})
}

// Libfabric 2.x may receive into the program's memory, and not into its own.
func TestForbiddenAccessAndProgramsMemory(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		infos, err := fabric.Discover(fabric.Hints{
			Provider: "efa", Endpoint: fabric.ReliableDatagram, Capabilities: fabric.Messages | fabric.RemoteMemory,
			MemoryMode: everyMemoryMode, OneThread: true,
		})
		require.NoError(t, err)
		f, d := partsOf(t, infos[0])
		const longest = 4000
		a := openStation(t, f, d, infos[0])
		memory, where := shared(t, a, 2*longest)
		where.Key += 1000
		region, err := d.Register(memory)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, region.Close()) })
		b := &station{info: infos[0], domain: d, q: queueOf(t, d, 512), events: eventsOf(t, f)}
		b.v, b.e = vectorOf(t, d), endpointOf(t, d)
		if err := b.e.SetSizeOption(fabric.OptionMaxMessage, longest); fabric.LibraryVersion().Major >= 2 {
			require.NoError(t, err)
		}
		require.NoError(t, b.e.Enable(b.v, b.q, b.events))
		for i := range 2 {
			b.must(t, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: memory[i*longest:][:longest], Descriptor: region.Descriptor()})
		}
		// The queue is of an endpoint, too, that receives as usual.
		for _, target := range []*station{b, stationAt(t, f, d, infos[0], b.q)} {
			a.peer, target.peer = a.insert(t, target), target.insert(t, a)
			op := fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: []byte("not yours"), Remote: where, Flags: fabric.DeliveryComplete}
			asks := a.asksPeer(t, &op)
			a.must(t, target, op)
			if !asks {
				require.Error(t, a.await(t, target).Err)
				continue
			}
			require.Eventually(t, func() bool {
				_, _, err = target.events.Read()
				a.turn(t, nil)
				target.turn(t, nil)
				return err != nil
			}, 30*time.Second, time.Millisecond)
			require.ErrorIs(t, err, syscall.EACCES)
		}
		require.Zero(t, memory[0])
	})
}

// With a cache, what is registered twice has one key, until both are closed.
func TestRegionsOfOneKey(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		const child = "WEFT_TEST_ONE_KEY"
		if os.Getenv(child) == "" {
			command := testprocess.Command(t, os.Args[0], "-test.run=^TestRegionsOfOneKey$", "-test.count=1", "-test.timeout=1m")
			command.Env = append(os.Environ(), child+"=yes", "FI_EFA_MR_CACHE_ENABLE=1")
			said, err := command.CombinedOutput()
			require.NoError(t, err, "%s", said)
			return
		}
		infos, err := fabric.Discover(fabric.Hints{
			Provider: "efa", Endpoint: fabric.ReliableDatagram, Capabilities: fabric.Messages | fabric.RemoteMemory,
			MemoryMode: everyMemoryMode &^ fabric.LocalRegistration, OneThread: true,
		})
		require.NoError(t, err)
		f, d := partsOf(t, infos[0])
		a, b := openStation(t, f, d, infos[0]), openStation(t, f, d, infos[0])
		a.peer, b.peer = a.insert(t, b), b.insert(t, a)
		memory := make([]byte, 4096)
		regions := make([]*fabric.Region, 3)
		for i := range regions {
			regions[i], err = d.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory)
			require.NoError(t, err)
		}
		where, err := regions[2].RemoteOf(memory)
		require.NoError(t, err)
		for i, r := range regions {
			data := []byte{byte(i) + 1}
			a.must(t, b, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: data, Remote: where, Flags: fabric.DeliveryComplete})
			require.NoError(t, a.await(t, b).Err)
			require.Equal(t, data, memory[:1])
			require.NoError(t, r.Close())
		}
	})
}

// A peer may take longer for an access than many that come behind it, to regions that are closed:
// the memory of its own, which is closed as well, is there until it is done.
func TestRegionsClosedBehindSlowAccess(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		for _, kind := range []fabric.OpKind{fabric.OpWrite, fabric.OpRead} {
			t.Run(kind.String(), func(t *testing.T) {
				const child = "WEFT_TEST_SLOW_ACCESS"
				if os.Getenv(child) == "" {
					command := testprocess.Command(t, os.Args[0], "-test.run=^TestRegionsClosedBehindSlowAccess$/^efa$/^"+kind.String()+"$", "-test.count=1", "-test.timeout=2m")
					command.Env = append(os.Environ(), child+"=yes", "MALLOC_PERTURB_=165")
					said, err := command.CombinedOutput()
					require.NoError(t, err, "%s", said)
					return
				}
				const long = 16 << 20
				slow, target := stations(t, "efa", fabric.Messages|fabric.RemoteMemory|fabric.Atomics)
				quick := openStation(t, target.fabric, target.domain, target.info)
				quick.peer = quick.insert(t, target)
				op := fabric.Op{Kind: kind, Peer: slow.peer, Buf: make([]byte, long)}
				if !slow.asksPeer(t, &op) {
					return
				}
				_ = slow.goesOn(t, target)
				arena, err := fabric.NewArena(long)
				require.NoError(t, err)
				region, err := arena.Register(target.domain, fabric.RegionConfig{Access: fabric.AccessAll})
				require.NoError(t, err)
				memory := arena.Bytes()
				for i := range memory {
					memory[i], op.Buf[i] = byte(i/4096+1), byte(i/4096+2)
				}
				op.Remote, err = region.RemoteOf(memory)
				require.NoError(t, err)
				slow.must(t, target, op)
				begun := func() bool {
					if kind == fabric.OpRead {
						return op.Buf[0] == 1
					}
					return memory[0] == 2
				}
				require.Eventually(t, func() bool {
					if !begun() {
						slow.turn(t, nil)
						target.turn(t, nil)
					}
					return begun()
				}, 30*time.Second, time.Microsecond)
				require.Empty(t, slow.got, "it was over at once")

				require.NoError(t, region.Close())
				require.NoError(t, arena.Close())
				sum := &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum, Result: make([]byte, 8)}
				for range 6 {
					other, err := fabric.NewArena(64 << 20)
					require.NoError(t, err)
					r, err := other.Register(target.domain, fabric.RegionConfig{Access: fabric.AccessAll})
					require.NoError(t, err)
					add := fabric.Op{Kind: fabric.OpFetch, Peer: quick.peer, Buf: make([]byte, 8), Atomic: sum}
					add.Remote, err = r.RemoteOf(other.Bytes()[:8])
					require.NoError(t, err)
					quick.must(t, target, add)
					require.NoError(t, quick.await(t, target).Err)
					require.NoError(t, r.Close())
					require.NoError(t, other.Close())
				}
				require.NoError(t, slow.await(t, target).Err)
			})
		}
	})
}
