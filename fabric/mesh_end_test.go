//go:build linux

package fabric_test

import (
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// meshSize is how many endpoints are in a mesh, of which two domains have a part each.
const meshSize = 5

// meshMemory is what each of them has for the others, and the longest message.
const meshMemory = 1 << 20

// Endpoints that all have to do with each other, and with themselves, may be closed by anybody in any order
// while they have: what goes on ends, and so does the rest of them afterwards.
func TestMeshIsClosedAmidTraffic(t *testing.T) {
	for _, provider := range testenv.Providers() {
		t.Run(provider, func(t *testing.T) {
			info := undertakingInfoFor(t, provider, false)
			for range 4 {
				t.Run("round", func(t *testing.T) { closeMesh(t, info) })
			}
		})
	}
}

func closeMesh(t *testing.T, info *fabric.Info) {
	t.Cleanup(func() { nothingOpen(t) })
	all := make([]*mesher, meshSize)
	var f *fabric.Fabric
	var d *fabric.Domain
	for i := range all {
		if i%3 == 0 {
			f, d = partsOf(t, info)
		}
		m := &mesher{station: openStation(t, f, d, info), random: rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))}
		_, remote := shared(t, m.station, meshMemory)
		arena, err := fabric.NewArena(2 * meshMemory)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, arena.Close()) })
		region, err := d.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessSend | fabric.AccessReceive | fabric.AccessRead | fabric.AccessWrite}, arena.Bytes())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, region.Close()) })
		m.memory, m.region, m.remote = arena.Bytes(), region, remote
		all[i] = m
	}
	for _, m := range all {
		for _, other := range all {
			m.peers = append(m.peers, m.insert(t, other.station))
			m.remotes = append(m.remotes, other.remote)
		}
	}
	var meshers sync.WaitGroup
	for _, m := range all {
		meshers.Go(m.work)
	}
	var closers sync.WaitGroup
	for i, m := range all {
		closers.Go(func() {
			m.awaitTurns(100 << (i % 4))
			m.closeErr = m.e.Close()
		})
	}
	closers.Wait()
	meshers.Wait()
	for _, m := range all {
		require.NoError(t, m.closeErr)
		require.ErrorIs(t, m.err, net.ErrClosed)
	}
}

// mesher is an endpoint of a mesh, and what its goroutine has done.
type mesher struct {
	*station
	random   *rand.Rand
	memory   []byte
	region   *fabric.Region
	remote   fabric.Remote
	peers    []fabric.Address
	remotes  []fabric.Remote
	turns    atomic.Int64
	receives int // that are posted
	err      error
	closeErr error
}

// awaitTurns returns when the endpoint has taken so many turns, or takes none any more.
func (m *mesher) awaitTurns(n int64) {
	for last := int64(0); last >= 0 && last < n; last = m.turns.Load() {
		runtime.Gosched()
	}
}

// work posts anything to anybody, until the endpoint is closed. What becomes of it does not matter.
func (m *mesher) work() {
	defer m.turns.Store(-1)
	var completions [32]fabric.Completion
	for {
		posts := make([]fabric.Op, m.random.IntN(4))
		for i := range posts {
			posts[i] = m.op()
		}
		n, err := m.e.Turn(posts, completions[:], 0)
		m.turns.Add(1)
		if err != nil {
			m.err = err
			return
		}
		for _, op := range posts {
			if op.Result == fabric.Posted && op.Kind == fabric.OpReceive {
				m.receives++
			}
		}
		for _, c := range completions[:n] {
			if c.Kind == fabric.OpReceive {
				m.receives--
			}
		}
		if n == 0 {
			runtime.Gosched()
		}
	}
}

func (m *mesher) op() fabric.Op {
	if m.receives < 64 && m.random.IntN(2) == 0 {
		return fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: m.memory[meshMemory:], Descriptor: m.region.Descriptor()}
	}
	lengths := []int{8, 1024, 20 << 10, 200 << 10, meshMemory}
	i, length := m.random.IntN(meshSize), lengths[m.random.IntN(len(lengths))]
	op := fabric.Op{
		Kind: []fabric.OpKind{fabric.OpSend, fabric.OpInject, fabric.OpRead, fabric.OpWrite, fabric.OpFetch}[m.random.IntN(5)],
		Peer: m.peers[i], Buf: m.memory[:length], Descriptor: m.region.Descriptor(),
	}
	switch op.Kind {
	case fabric.OpSend:
		return op
	case fabric.OpInject:
		op.Buf, op.Descriptor = op.Buf[:8], 0
		return op
	case fabric.OpFetch:
		op.Buf = op.Buf[:8]
		op.Atomic = &fabric.Atomic{Operation: fabric.Sum, Type: fabric.Int64, Result: m.memory[8:16], ResultDescriptor: m.region.Descriptor()}
	}
	op.Remote = m.remotes[i]
	return op
}
