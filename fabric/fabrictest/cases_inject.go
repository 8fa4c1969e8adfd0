package fabrictest

import "github.com/weft-go/weft/fabric"

var injectCases = []named{
	{"messages", injectMessages},
	{"longest", injectLongest},
	{"buffer is free", injectFrees},
}

// An inject arrives, and has no completion.
func injectMessages(t *trial) {
	a, b := pairOf(t, bothMessages)
	for _, kinds := range [][2]fabric.OpKind{{fabric.OpInject, fabric.OpReceive}, {fabric.OpTaggedInject, fabric.OpTaggedReceive}} {
		got := make([]byte, 16)
		b.must(t, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Tag: 3, Buf: got})
		a.must(t, fabric.Op{Kind: kinds[0], Peer: a.peer, Tag: 3, Buf: []byte("injected")})
		c := b.done(t)
		equal(t, "injected", string(got[:c.Len]))
	}
	idle(t, a, b)
}

// The longest that the provider takes arrives, as does nothing at all.
func injectLongest(t *trial) {
	a, b := pairOf(t, fabric.TaggedMessages)
	most := int(a.site.info.InjectSize())
	isTrue(t, most > 0, "an inject size")
	for _, size := range []int{0, most - 1, most} {
		got := make([]byte, most)
		b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Buf: got})
		a.must(t, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: 3, Buf: counting(size)})
		equal(t, size, b.done(t).Len)
		equal(t, counting(size), got[:size])
	}
	idle(t, a, b)
}

// The buffer of an inject is the caller's when the call returns.
func injectFrees(t *trial) {
	a, b := pairOf(t, fabric.TaggedMessages)
	buf := make([]byte, 16)
	const count = 20
	for i := range count {
		for j := range buf {
			buf[j] = byte(i)
		}
		a.must(t, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: uint64(i), Buf: buf})
	}
	clear(buf)
	for i := range count {
		got := make([]byte, 16)
		b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(i), Buf: got})
		b.done(t)
		equal(t, [2]byte{byte(i), byte(i)}, [2]byte{got[0], got[15]})
	}
	idle(t, a, b)
}
