package fabric_test

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// post gives an endpoint operations, which it may refuse.
func (w *world) post(e *anEndpoint) {
	if !e.enabled {
		w.enable(e)
	}
	if !e.enabled {
		return
	}
	var ops []fabric.Op
	for range 1 + w.number(6) {
		ops = append(ops, w.operation(e))
	}
	w.say("post %v to %s", kindsOf(ops), w.name(e))
	w.turn(e, ops...)
	for _, op := range ops {
		if op.Result == fabric.Posted {
			e.tokens = append(e.tokens, op.Token)
		}
	}
}

func kindsOf(ops []fabric.Op) (list []string) {
	for _, op := range ops {
		list = append(list, fmt.Sprintf("%v of %d to %d", op.Kind, len(op.Buf), op.Peer))
	}
	return list
}

func (w *world) operation(e *anEndpoint) fabric.Op {
	kinds := []fabric.OpKind{fabric.OpReceive, fabric.OpSend, fabric.OpSend, fabric.OpInject}
	caps := e.Info().Capabilities()
	if caps&fabric.TaggedMessages != 0 {
		kinds = append(kinds, fabric.OpTaggedReceive, fabric.OpTaggedSend, fabric.OpTaggedSend, fabric.OpTaggedInject)
	}
	if caps&fabric.RemoteMemory != 0 {
		kinds = append(kinds, fabric.OpRead, fabric.OpWrite, fabric.OpWriteInject)
	}
	op := fabric.Op{Kind: kinds[w.number(len(kinds))], Tag: uint64(w.number(3))}
	sizes := []int{0, 8, 60, 1000, 4097, 16384, 40000, 300_000}
	switch op.Kind {
	case fabric.OpInject, fabric.OpTaggedInject, fabric.OpWriteInject:
		sizes = sizes[:2]
	default:
		if e.Info().Endpoint() == fabric.Datagram {
			sizes = sizes[:4]
		}
	}
	w.provide(e, &op, sizes[w.number(len(sizes))])
	op.Peer = fabric.AddressAny
	switch op.Kind {
	case fabric.OpReceive, fabric.OpTaggedReceive:
		if e.shares != nil {
			// Those are posted to the context.
			op.Kind = fabric.OpSend
			break
		}
		return op
	}
	if e.v != nil {
		if len(e.v.peers) == 0 {
			return fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: op.Buf, Descriptor: op.Descriptor, Fixed: op.Fixed}
		}
		op.Peer = e.v.peers[w.number(len(e.v.peers))]
		e.v.unused = slices.DeleteFunc(e.v.unused, func(p fabric.Address) bool { return p == op.Peer })
	}
	switch op.Kind {
	case fabric.OpRead, fabric.OpWrite, fabric.OpWriteInject:
		op.Remote = w.aim(e)
		op.Buf = op.Buf[:min(len(op.Buf), 64<<10)]
	}
	return op
}

// provide gives an operation memory, registered at times, and always where it must be.
func (w *world) provide(e *anEndpoint, op *fabric.Op, size int) {
	if e.Info().MemoryMode()&fabric.LocalRegistration == 0 && w.number(3) > 0 {
		op.Buf = make([]byte, size)
		return
	}
	r := w.region(e.d)
	op.Buf, op.Descriptor, op.Fixed = r.memory[:min(size, len(r.memory))], r.Descriptor(), true
}

// aim is memory of a peer. Mostly it is none of it, but of an endpoint in the same
// domain, and so stands for memory with a wrong key.
func (w *world) aim(e *anEndpoint) fabric.Remote { return w.region(e.d).remote }

// turn takes a turn for which nobody cares, but for how errors are.
func (w *world) turn(x turner, posts ...fabric.Op) []fabric.Completion {
	var completions [16]fabric.Completion
	n, err := x.Turn(posts, completions[:], 0)
	require.NoError(w.t, err)
	typed := func(err error) {
		if err != nil {
			var e *fabric.Error
			require.ErrorAs(w.t, err, &e)
		}
	}
	for _, op := range posts {
		typed(op.Err)
	}
	for _, c := range completions[:n] {
		typed(c.Err)
	}
	return completions[:n]
}

// acquaint has two endpoints know each other, or one itself.
func (w *world) acquaint() {
	a, ok := one(w, func(e *anEndpoint) bool { return e.enabled && e.v != nil })
	if !ok {
		return
	}
	b, _ := one(w, func(e *anEndpoint) bool { return e.enabled && e.d.f.info == a.d.f.info })
	for _, way := range [][2]*anEndpoint{{a, b}, {b, a}} {
		v := way[0].v
		w.say("insert %s into %s", w.name(way[1]), w.name(v))
		peer, err := v.Insert(must[[]byte](w.t)(way[1].Name()))
		require.NoError(w.t, err)
		if !slices.Contains(v.peers, peer) || slices.Contains(v.unused, peer) {
			v.unused = append(v.unused, peer)
		}
		if !slices.Contains(v.peers, peer) {
			v.peers = append(v.peers, peer)
		}
	}
}

// remove removes a peer to which nothing is under way.
func (w *world) remove() {
	v, ok := one(w, func(v *aVector) bool { return len(v.unused) > 0 })
	if !ok {
		return
	}
	i := w.number(len(v.unused))
	peer := v.unused[i]
	w.say("remove %d from %s", peer, w.name(v))
	require.NoError(w.t, v.Remove(peer))
	v.unused = slices.Delete(v.unused, i, i+1)
	v.peers = slices.DeleteFunc(v.peers, func(p fabric.Address) bool { return p == peer && !slices.Contains(v.unused, peer) })
}
