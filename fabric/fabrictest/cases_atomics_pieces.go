package fabrictest

import (
	"unsafe"

	"github.com/weft-go/weft/fabric"
)

// Several pieces of a peer's memory, in one region and in two, are combined with what is
// here at once.
func severalAtomicPieces(t *trial) {
	const each = 2 // values, and one more for each piece
	a, b := pairOf(t, fabric.Atomics)
	for _, needed := range []struct {
		kind fabric.OpKind
		op   fabric.AtomicOp
	}{{fabric.OpFetch, fabric.Sum}, {fabric.OpCompare, fabric.CompareSwap}, {fabric.OpAtomic, fabric.Sum}, {fabric.OpFetch, fabric.AtomicRead}} {
		_, err := a.e.AtomicLimit(needed.kind, fabric.Int64, needed.op)
		t.need(needed.kind.String()+" of Int64", err)
	}
	most := int(min(a.site.info.Send().RemoteVectors, 8))
	memory, remote := b.site.shared(t, 4096)
	other, otherRemote := b.site.shared(t, 4096)
	const values = 4096 / 8
	there := [2][]int64{
		unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(memory))), values),
		unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(other))), values),
	}
	for count := 1; count <= most; count++ {
		var pieces []fabric.RemotePart
		var places [][]int64
		total := 0
		for i := range count {
			r, at, n := remote, 16*i, each+i
			if i%2 == 1 {
				r = otherRemote
			}
			r.Address += uint64(8 * at)
			pieces = append(pieces, fabric.RemotePart{Remote: r, Len: uint64(8 * n)})
			places = append(places, there[i%2][at:at+n])
			total += n
		}
		here, before, want := make([]int64, total), make([]int64, 0, total), make([]int64, 0, total)
		for i := range here {
			here[i] = int64(1000*count + i)
		}
		for _, p := range places {
			for i := range p {
				p[i] = int64(i + 7*count)
				before = append(before, p[i])
				want = append(want, p[i]+here[len(want)])
			}
		}
		now := func() (all []int64) {
			for _, p := range places {
				all = append(all, p...)
			}
			return all
		}
		sum := &fabric.Atomic{Type: fabric.Int64, Operation: fabric.Sum}
		got := make([]int64, total)
		fetch := &fabric.Atomic{Type: fabric.Int64, Operation: fabric.Sum, Result: fabric.BytesOf(got)}
		a.must(t, fabric.Op{Kind: fabric.OpFetch, Peer: a.peer, Buf: fabric.BytesOf(here), Remotes: pieces, Atomic: fetch})
		a.done(t)
		equal(t, before, got, "%d pieces fetched", count)
		equal(t, want, now(), "%d pieces added to", count)

		compare := &fabric.Atomic{
			Type: fabric.Int64, Operation: fabric.CompareSwap, Compare: fabric.BytesOf(want), Result: fabric.BytesOf(got),
		}
		a.must(t, fabric.Op{Kind: fabric.OpCompare, Peer: a.peer, Buf: fabric.BytesOf(before), Remotes: pieces, Atomic: compare})
		a.done(t)
		equal(t, want, got, "%d pieces compared", count)
		equal(t, before, now(), "%d pieces swapped", count)

		a.must(t, fabric.Op{Kind: fabric.OpAtomic, Peer: a.peer, Buf: fabric.BytesOf(here), Remotes: pieces, Atomic: sum})
		a.done(t)
		// In order behind it, or not before it was done.
		read := &fabric.Atomic{Type: fabric.Int64, Operation: fabric.AtomicRead, Result: fabric.BytesOf(got), Count: total}
		t.until("the pieces are added to", func(int) bool {
			a.must(t, fabric.Op{Kind: fabric.OpFetch, Peer: a.peer, Remotes: pieces, Atomic: read})
			a.done(t)
			return got[total-1] == want[total-1]
		})
		equal(t, want, got, "%d pieces added to without a result", count)
	}
	piece := []fabric.RemotePart{{Remote: remote, Len: 8}}
	sum := &fabric.Atomic{Type: fabric.Int64, Operation: fabric.Sum}
	for _, op := range []fabric.Op{
		{Kind: fabric.OpAtomic, Buf: make([]byte, 16), Remotes: piece},
		{Kind: fabric.OpAtomic, Buf: make([]byte, 8), Remotes: piece, Remote: remote},
		{Kind: fabric.OpAtomicInject, Buf: make([]byte, 8), Remotes: piece},
		{Kind: fabric.OpAtomic, Buf: make([]byte, 8), Remotes: []fabric.RemotePart{{Remote: remote, Len: 4}, {Remote: remote, Len: 4}}},
		{Kind: fabric.OpAtomic, Buf: make([]byte, 8*(most+1)), Remotes: make([]fabric.RemotePart, most+1)},
	} {
		op.Peer, op.Atomic = a.peer, sum
		errorIs(t, a.post(t, op).Err, fabric.ErrInvalid)
	}
	idle(t, a, b)
}
