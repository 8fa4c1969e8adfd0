//go:build !asan

package fabric_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

func TestReadsAndWritesDoNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.RemoteMemory)
		_, remote := shared(t, b, 1<<16)
		memories(t, func(t *testing.T, fixed bool, memory func(int) []byte) {
			var vector [][]byte
			for range min(a.info.Send().Vectors, 8) {
				vector = append(vector, memory(8))
			}
			buf, long := memory(64), memory(1<<16)
			pieces := []fabric.RemotePart{{Remote: remote, Len: 64}}
			if a.info.Send().RemoteVectors > 1 {
				second := remote
				second.Address += 100
				pieces = []fabric.RemotePart{{Remote: remote, Len: 60}, {Remote: second, Len: 4}}
			}
			for _, c := range []struct {
				name string
				op   fabric.Op
				told int // completions at the peer
			}{
				{name: "plain", op: fabric.Op{Kind: fabric.OpWrite, Buf: buf}},
				{name: "long", op: fabric.Op{Kind: fabric.OpWrite, Buf: long}},
				{name: "vector", op: fabric.Op{Kind: fabric.OpWrite, Vector: vector}},
				{name: "delivery complete", op: fabric.Op{Kind: fabric.OpWrite, Buf: buf, Flags: fabric.DeliveryComplete}},
				{name: "transmit complete", op: fabric.Op{Kind: fabric.OpWrite, Buf: buf, Flags: fabric.TransmitComplete}},
				{name: "inject complete", op: fabric.Op{Kind: fabric.OpWrite, Buf: buf, Flags: fabric.InjectComplete}},
				{name: "immediate", op: fabric.Op{Kind: fabric.OpWrite, Buf: buf, Flags: fabric.Immediate}, told: 1},
				{name: "plain", op: fabric.Op{Kind: fabric.OpWriteInject, Buf: buf}},
				{name: "immediate", op: fabric.Op{Kind: fabric.OpWriteInject, Buf: buf, Flags: fabric.Immediate}, told: 1},
				{name: "plain", op: fabric.Op{Kind: fabric.OpRead, Buf: buf}},
				{name: "long", op: fabric.Op{Kind: fabric.OpRead, Buf: long}},
				{name: "vector", op: fabric.Op{Kind: fabric.OpRead, Vector: vector}},
				{name: "pieces", op: fabric.Op{Kind: fabric.OpWrite, Buf: buf, Remotes: pieces}},
				{name: "pieces", op: fabric.Op{Kind: fabric.OpRead, Buf: buf, Remotes: pieces}},
			} {
				c.op.Peer, c.op.Fixed = a.peer, fixed
				if c.op.Remotes == nil {
					c.op.Remote = remote
				}
				e := between(a, b, c.op)
				e.want[1] = c.told
				e.requireFree(t, fmt.Sprint(c.op.Kind, " ", c.name))
			}
		})
	})
}

func TestAtomicsDoNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Atomics)
		_, remote := shared(t, b, 4096)
		for _, one := range []struct {
			name string
			test func(t *testing.T, a, b *station, remote fabric.Remote) int
		}{
			{"int8", freeAtomics[int8]},
			{"uint16", freeAtomics[uint16]},
			{"int32", freeAtomics[int32]},
			{"uint64", freeAtomics[uint64]},
			{"float32", freeAtomics[float32]},
			{"float64", freeAtomics[float64]},
			{"complex64", freeAtomics[complex64]},
			{"complex128", freeAtomics[complex128]},
		} {
			t.Run(one.name, func(t *testing.T) {
				if one.test(t, a, b, remote) == 0 {
					testenv.Need(t, fmt.Sprintf("atomics of %s on %s", one.name, provider), fabric.ErrNotSupported)
				}
			})
		}
	})
}

// freeAtomics tries every kind of atomic operation that the provider has for a
// type, and says how many those are.
func freeAtomics[T fabric.Number](t *testing.T, a, b *station, remote fabric.Remote) (tried int) {
	kind := fabric.TypeOf[T]()
	values, result, compare := []T{1, 2}, make([]T, 2), []T{3, 4}
	bytes := fabric.BytesOf[T]
	for _, c := range []struct {
		name   string
		op     fabric.Op
		atomic fabric.Atomic
	}{
		{"base", fabric.Op{Kind: fabric.OpAtomic, Buf: bytes(values)}, fabric.Atomic{Operation: fabric.Sum}},
		{"write", fabric.Op{Kind: fabric.OpAtomic, Buf: bytes(values)}, fabric.Atomic{Operation: fabric.AtomicWrite}},
		{"vector", fabric.Op{Kind: fabric.OpAtomic, Vector: [][]byte{bytes(values[:1]), bytes(values[1:])}}, fabric.Atomic{Operation: fabric.Sum}},
		{"complete", fabric.Op{Kind: fabric.OpAtomic, Buf: bytes(values), Flags: fabric.DeliveryComplete}, fabric.Atomic{Operation: fabric.Sum}},
		{"inject", fabric.Op{Kind: fabric.OpAtomicInject, Buf: bytes(values)}, fabric.Atomic{Operation: fabric.Sum}},
		{"fetch", fabric.Op{Kind: fabric.OpFetch, Buf: bytes(values)}, fabric.Atomic{Operation: fabric.Sum, Result: bytes(result)}},
		{"read", fabric.Op{Kind: fabric.OpFetch}, fabric.Atomic{Operation: fabric.AtomicRead, Result: bytes(result), Count: 2}},
		{
			"compare",
			fabric.Op{Kind: fabric.OpCompare, Buf: bytes(values)},
			fabric.Atomic{Operation: fabric.CompareSwap, Result: bytes(result), Compare: bytes(compare)},
		},
	} {
		limited := c.op.Kind
		if limited == fabric.OpAtomicInject {
			limited = fabric.OpAtomic
		}
		if _, err := a.e.AtomicLimit(limited, kind, c.atomic.Operation); err != nil {
			require.ErrorIs(t, err, fabric.ErrNotSupported)
			continue
		}
		if c.op.Flags&fabric.DeliveryComplete != 0 && strings.HasPrefix(a.e.Info().Provider(), "shm") {
			continue
		}
		c.atomic.Type = kind
		c.op.Peer, c.op.Remote, c.op.Atomic = a.peer, remote, &c.atomic
		between(a, b, c.op).requireFree(t, c.name)
		tried++
	}
	requireFree(t, func() { _, _ = fabric.TypeOf[T](), fabric.BytesOf(values) }, "type and bytes")
	return tried
}
