package fabrictest

import (
	"bytes"

	"github.com/weft-go/weft/fabric"
)

var multiReceiveCases = []named{
	{"many in one", manyInOne},
	{"minimum", leastMultiReceive},
}

// One buffer takes many messages, and comes back when it is full.
func manyInOne(t *trial) {
	a, b := pairOf(t, fabric.Messages|fabric.MultiReceiveBuffers)
	const size, count = 100, 200
	// A buffer with room for less is released.
	noError(t, b.e.SetSizeOption(fabric.OptionMinMultiReceive, size))
	buf := make([]byte, 4096)
	posted := 0
	post := func() {
		b.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: buf, Flags: fabric.MultiReceive, Context: 5})
		posted++
	}
	post()
	for i := range count {
		sent := bytes.Repeat([]byte{byte(i)}, size)
		a.must(t, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: sent})
		c := b.await(t)
		// The end of the buffer may come as a completion of its own.
		if c.Released && c.Len == 0 {
			post()
			c = b.await(t)
		}
		noError(t, c.Err)
		equal(t, 5, c.Context)
		equal(t, size, c.Len)
		equal(t, sent, buf[c.Offset:c.Offset+size])
		if c.Released {
			post()
		}
		a.done(t)
	}
	isTrue(t, posted > count*size/len(buf), "%d buffers for %d messages", posted, count)
}

// The room that a buffer must have to be kept is an option of the endpoint.
func leastMultiReceive(t *trial) {
	a, b := pairOf(t, fabric.Messages|fabric.MultiReceiveBuffers)
	noError(t, b.e.SetSizeOption(fabric.OptionMinMultiReceive, 1234))
	value, err := b.e.SizeOption(fabric.OptionMinMultiReceive)
	noError(t, err)
	equal(t, 1234, value)
	idle(t, a, b)
}
