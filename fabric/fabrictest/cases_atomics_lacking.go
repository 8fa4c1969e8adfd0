package fabrictest

import (
	"errors"

	"github.com/weft-go/weft/fabric"
)

// What the provider says that it lacks is refused, and so is more than it takes at
// once. Offered all the same, it ends the peer's process on sockets, tcp and shm.
func lackingAtomics(t *trial) {
	x := newAtoms[uint64](t)
	before := counting(256)
	memory := fabric.BytesOf(x.there)
	lacked := 0
	for kind := fabric.Int8; kind <= fabric.Float8E5M2; kind++ {
		for op := fabric.Min; op <= fabric.Difference; op++ {
			for _, k := range []fabric.OpKind{fabric.OpAtomic, fabric.OpFetch, fabric.OpCompare} {
				if _, err := x.a.e.AtomicLimit(k, kind, op); !errors.Is(err, fabric.ErrNotSupported) {
					noError(t, err)
					continue
				}
				lacked++
				size := kind.Size()
				with := &fabric.Atomic{Type: kind, Operation: op}
				post := fabric.Op{Kind: k, Peer: x.a.peer, Remote: x.remote, Atomic: with, Buf: make([]byte, size)}
				if k != fabric.OpAtomic {
					with.Result = make([]byte, size)
				}
				if k == fabric.OpCompare {
					with.Compare = make([]byte, size)
				}
				copy(memory, before)
				post = x.a.post(t, post)
				isTrue(t, errors.Is(post.Err, fabric.ErrNotSupported), "%v %v, %v: %v", kind, op, k, post.Err)
				equal(t, before, memory)
			}
		}
	}
	if lacked == 0 {
		t.need("atomics that are not supported", fabric.ErrNotSupported)
	}
	if limit, err := x.a.e.AtomicLimit(fabric.OpAtomic, fabric.Uint64, fabric.Sum); err == nil {
		post := x.a.post(t, fabric.Op{
			Kind: fabric.OpAtomic, Peer: x.a.peer, Remote: x.remote, Buf: make([]byte, (limit+1)*8),
			Atomic: &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum},
		})
		isTrue(t, errors.Is(post.Err, fabric.ErrInvalid), "%v", post.Err)
	}
	if x.has(t, fabric.OpFetch, fabric.Sum) {
		x.update(t, fabric.OpFetch, fabric.Sum, func(there, here uint64) uint64 { return there + here })
	}
	idle(t, x.a, x.b)
}
