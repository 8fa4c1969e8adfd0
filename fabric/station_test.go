package fabric_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// everyMemoryMode is what the tests can live with.
const everyMemoryMode = fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys

// sourceOn is what endpoints of a provider are bound to: shm takes it for their
// name, and efa has devices in place of addresses.
func sourceOn(provider string) string {
	if provider == "shm" || provider == "efa" {
		return ""
	}
	return "127.0.0.1"
}

// stations opens two endpoints of one domain with the capabilities, that know
// each other; the test is skipped, and counted, where the provider has no such
// endpoint.
func stations(t *testing.T, provider string, caps fabric.Capabilities) (a, b *station) {
	t.Helper()
	hints := fabric.Hints{
		Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: caps,
		MemoryMode: everyMemoryMode, OneThread: true, OrderedSends: true,
	}
	hints.Source = sourceOn(provider)
	infos, err := fabric.Discover(hints)
	testenv.Need(t, provider+" with "+t.Name(), err)
	info := infos[0]
	f, d := partsOf(t, info)
	a, b = openStation(t, f, d, info), openStation(t, f, d, info)
	a.peer, b.peer = a.insert(t, b), b.insert(t, a)
	return a, b
}

// station is an endpoint with its queues.
type station struct {
	info   *fabric.Info
	fabric *fabric.Fabric
	domain *fabric.Domain
	e      *fabric.Endpoint
	q      *fabric.CompletionQueue
	v      *fabric.AddressVector
	events *fabric.EventQueue
	peer   fabric.Address
	got    []fabric.Completion
}

func openStation(t *testing.T, f *fabric.Fabric, d *fabric.Domain, info *fabric.Info) *station {
	t.Helper()
	return stationAt(t, f, d, info, nil)
}

// stationAt opens a station that shares a queue, unless it is nil.
func stationAt(t *testing.T, f *fabric.Fabric, d *fabric.Domain, info *fabric.Info, q *fabric.CompletionQueue) *station {
	t.Helper()
	s := &station{info: info, fabric: f, domain: d, q: q, events: eventsOf(t, f)}
	if q == nil {
		s.q = queueOf(t, d, 512)
	}
	s.v, s.e = vectorOf(t, d), endpointOf(t, d)
	require.NoError(t, s.e.Enable(s.v, s.q, s.events))
	return s
}

func (s *station) insert(t *testing.T, other *station) fabric.Address {
	t.Helper()
	return insert(t, s.v, other.e)
}

// post posts one operation, however often it is refused.
func (s *station) post(t *testing.T, other *station, op fabric.Op) fabric.Op {
	t.Helper()
	posts := []fabric.Op{op}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		s.turn(t, posts)
		if posts[0].Result != fabric.Refused {
			return posts[0]
		}
		other.turn(t, nil)
	}
	t.Fatal("refused for ever")
	return op
}

// postAll posts operations in as few turns as the provider allows.
func (s *station) postAll(t *testing.T, other *station, ops []fabric.Op) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for left := ops; len(left) > 0; {
		require.True(t, time.Now().Before(deadline), "refused for ever")
		s.turn(t, left)
		for len(left) > 0 && left[0].Result != fabric.Refused {
			require.NoError(t, left[0].Err)
			left = left[1:]
		}
		other.turn(t, nil)
	}
}

func (s *station) turn(t *testing.T, posts []fabric.Op) {
	t.Helper()
	var buf [32]fabric.Completion
	n, err := s.e.Turn(posts, buf[:], 0)
	require.NoError(t, err)
	s.got = append(s.got, buf[:n]...)
}

// must posts an operation that has to be taken.
func (s *station) must(t *testing.T, other *station, op fabric.Op) fabric.Op {
	t.Helper()
	op = s.post(t, other, op)
	require.NoError(t, op.Err)
	return op
}

// await turns both until s has a completion, and returns it.
func (s *station) await(t *testing.T, other *station) fabric.Completion {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); len(s.got) == 0; {
		require.True(t, time.Now().Before(deadline), "no completion")
		s.turn(t, nil)
		other.turn(t, nil)
		if len(s.got) == 0 && s.info.Provider() == "sockets" {
			// Its thread needs the core.
			var buf [8]fabric.Completion
			n, err := s.e.TurnWait(nil, buf[:], 1)
			require.NoError(t, err)
			s.got = append(s.got, buf[:n]...)
		}
	}
	c := s.got[0]
	s.got = s.got[1:]
	return c
}

// shared is memory of b's that a may read and write, and how a names it.
func shared(t *testing.T, b *station, size int) ([]byte, fabric.Remote) {
	t.Helper()
	arena, err := fabric.NewArena(size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, arena.Close()) })
	region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessRemoteRead | fabric.AccessRemoteWrite}, arena.Bytes()[:size])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, region.Close()) })
	remote, err := region.RemoteOf(arena.Bytes()[:size])
	require.NoError(t, err)
	return arena.Bytes()[:size], remote
}
