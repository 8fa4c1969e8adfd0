package fabric_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// held is memory of a station that is registered, and closed by the test.
func held(t *testing.T, s *station, size int) (*fabric.Region, []byte, fabric.Descriptor) {
	t.Helper()
	memory := arena(t, size)
	r, err := memory.Register(s.domain, fabric.RegionConfig{Access: fabric.AccessAll})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	d := r.Descriptor()
	if d == 0 {
		testenv.Need(t, "a descriptor on "+s.info.Provider(), fabric.ErrNotSupported)
	}
	return r, memory.Bytes(), d
}

// refusesFor asserts that a region is not closed, and why.
func refusesFor(t *testing.T, r *fabric.Region, why string) {
	t.Helper()
	err := r.Close()
	require.ErrorIs(t, err, fabric.ErrBusy)
	require.Regexp(t, why, err.Error())
	require.NotZero(t, r.Descriptor(), "it is open")
}

// A region is not closed while an operation in flight has it, wherever that has its
// descriptor, and is when that is complete.
func TestRegionOfOperationInFlight(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		region, memory, d := held(t, a, 1<<16)
		other, _, _ := held(t, a, 4096)
		receives := []fabric.Op{
			{Buf: memory[:64], Descriptor: d},
			{Vector: [][]byte{memory[:64], memory[64:128]}, Descriptors: []fabric.Descriptor{other.Descriptor(), d}},
		}
		// The other region covers none of the memory: it is not used before it is closed.
		receives[1].Vector[0] = nil
		for _, op := range receives {
			op.Kind, op.Peer, op.Tag, op.Fixed = fabric.OpTaggedReceive, fabric.AddressAny, 7, true
			op = a.must(t, b, op)
			refusesFor(t, region, `in flight with it: 1 tagged receive of endpoint \S+`)
			require.NoError(t, a.e.Cancel(op.Token))
			require.ErrorIs(t, a.await(t, b).Err, fabric.ErrCanceled)
		}
		// Several, at two endpoints, of which one comes to its end and the other is closed.
		for _, s := range []*station{a, a, b} {
			s.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 8, Buf: memory[:64], Descriptor: d, Fixed: true})
		}
		refusesFor(t, region, `in flight with it: 1 tagged receive of endpoint \S+, 2 tagged receive of endpoint`)
		require.NoError(t, b.e.Close())
		refusesFor(t, region, `in flight with it: 2 tagged receive of endpoint`)
		require.NoError(t, a.e.Close())
		require.NoError(t, region.Close(), "behind the endpoints")
		require.NoError(t, other.Close())
	})
}

// What a fetching atomic brings, and what it compares with, is memory of it as well.
func TestRegionOfAtomicInFlight(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openSite(t, fabric.Hints{Provider: provider, MemoryMode: everyMemoryMode, Capabilities: fabric.Messages | fabric.Atomics}, nil, nil)
		region, memory, d := held(t, s.a, 4096)
		_, remote := shared(t, s.b, 64)
		operands, _, operand := held(t, s.a, 4096)
		_ = operands
		op := s.a.must(t, s.b, fabric.Op{
			Kind: fabric.OpFetch, Peer: s.a.peer, Buf: make([]byte, 8), Descriptor: operand, Remote: remote,
			Atomic: &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.AtomicRead, Result: memory[:8], ResultDescriptor: d},
		})
		require.Equal(t, fabric.Posted, op.Result)
		if len(s.a.got) == 0 {
			refusesFor(t, region, `in flight with it: 1 fetching atomic of endpoint`)
		}
		require.NoError(t, s.a.await(t, s.b).Err)
		require.NoError(t, region.Close())
	})
}

// A region is closed beside endpoints that others wait in or turn.
func TestRegionIsClosedBesideTurns(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := strewInfo(t, provider)
		f, d := partsOf(t, info)
		s := openStation(t, f, d, info)
		var turning sync.WaitGroup
		defer turning.Wait()
		turn := s.e.TurnWait
		if _, err := s.e.TurnWait(nil, make([]fabric.Completion, 1), 1); err != nil {
			testenv.Need(t, provider+" turns", nil)
			turn = s.e.Turn
		}
		turning.Go(func() {
			var one [1]fabric.Completion
			for {
				// An hour, where it waits.
				if _, err := turn(nil, one[:], 3600*1000); err != nil {
					assert.ErrorIs(t, err, net.ErrClosed)
					return
				}
			}
		})
		defer func() { require.NoError(t, s.e.Close()) }()
		require.Eventually(t, func() bool { return fabric.UsersOfEndpoint(s.e) > 0 }, 30*time.Second, time.Millisecond)
		for range 5 {
			memory := arena(t, 4096)
			r, err := memory.Register(d, fabric.RegionConfig{})
			require.NoError(t, err)
			require.NoError(t, soon(t, r))
		}
	})
}

// A deferred operation has its memory until it is closed.
func TestRegionOfDeferredOperation(t *testing.T) {
	a, b := stations(t, "sockets", fabric.Messages|fabric.TaggedMessages|fabric.TriggeredOperations)
	region, memory, d := held(t, a, 4096)
	counter, err := a.domain.OpenCounter()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, counter.Close()) })
	op, when := fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1, Buf: memory[:8], Descriptor: d, Fixed: true}, fabric.Trigger{Counter: counter, Threshold: 1}
	f, err := a.e.Defer(op, when, nil)
	require.NoError(t, err)
	closed, _, stale := held(t, a, 4096)
	require.NoError(t, closed.Close())
	op.Descriptor = stale
	_, err = a.e.Defer(op, when, nil)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.ErrorContains(t, err, "is of no region of this domain that is open")
	refusesFor(t, region, `in flight with it: 1 deferred operation`)
	require.NoError(t, b.e.Close())
	require.NoError(t, a.e.Close())
	require.NoError(t, f.Close())
	require.NoError(t, region.Close())
}
