package fabrictest

import "github.com/weft-go/weft/fabric"

var cancelCases = []named{
	{"receive", cancelReceive},
	{"some of several", cancelSome},
}

// A receive that is cancelled ends so, once.
func cancelReceive(t *trial) {
	a, b := pairOf(t, bothMessages)
	for _, kind := range []fabric.OpKind{fabric.OpReceive, fabric.OpTaggedReceive} {
		op := a.must(t, fabric.Op{Kind: kind, Peer: fabric.AddressAny, Tag: 5, Buf: make([]byte, 8), Context: 1})
		noError(t, a.e.Cancel(op.Token))
		c := a.await(t)
		equal(t, 1, c.Context)
		errorIs(t, c.Err, fabric.ErrCanceled)
		noError(t, a.e.Cancel(op.Token), "a token of the past")
	}
	idle(t, a, b)
}

// Of four receives three are cancelled, in another order than they were posted:
// the message goes to the one that is left.
func cancelSome(t *trial) {
	a, b := pairOf(t, fabric.TaggedMessages)
	var ops [4]fabric.Op
	for i := range ops {
		ops[i] = b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 5, Buf: make([]byte, 8), Context: uint64(i)})
	}
	for _, i := range []int{2, 3, 0} {
		noError(t, b.e.Cancel(ops[i].Token))
		c := b.await(t)
		equal(t, uint64(i), c.Context)
		errorIs(t, c.Err, fabric.ErrCanceled)
	}
	a.say(t, 5, "left")
	c := b.done(t)
	equal(t, 1, c.Context)
	equal(t, "left", string(ops[1].Buf[:c.Len]))
	// One that was received cannot be cancelled any more.
	noError(t, b.e.Cancel(ops[1].Token))
	idle(t, a, b)
}
