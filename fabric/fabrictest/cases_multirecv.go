package fabrictest

import (
	"bytes"

	"github.com/weft-go/weft/fabric"
)

var multiReceiveCases = []named{
	{"many in one", manyInOne},
	{"longer than the rest", longerThanTheRest},
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
	least := count * size / len(buf)
	isTrue(t, posted > least && posted <= 2*least+2, "%d buffers for %d messages", posted, count)
}

// A message that is longer than what is left of a buffer harms nothing behind it, and neither
// do those that come then.
func longerThanTheRest(t *trial) {
	a, b := pairOf(t, fabric.Messages|fabric.MultiReceiveBuffers)
	noError(t, b.e.SetSizeOption(fabric.OptionMinMultiReceive, 8))
	const length, room = 20, 4096
	var memory [][]byte
	post := func() {
		memory = append(memory, make([]byte, room))
		b.must(t, fabric.Op{
			Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: memory[len(memory)-1][:length:length],
			Flags: fabric.MultiReceive, Context: uint64(len(memory) - 1),
		})
	}
	post()
	for i, size := range []int{9, 12, 100, 7} {
		a.must(t, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: bytes.Repeat([]byte{byte(i + 1)}, size)})
		if i == 0 {
			c := b.await(t)
			equal(t, size, c.Len)
			b.got = append(b.got, c)
		}
		// What comes of a message that does not fit, if anything, is the provider's to say.
		for try := range 300 {
			a.step(t, nil, try)
		}
		for _, c := range b.got {
			if c.Err == nil && c.Len > 0 {
				buf := memory[c.Context]
				isTrue(t, c.Offset+c.Len <= length, "a message of %d bytes at %d in a buffer of %d", c.Len, c.Offset, length)
				equal(t, bytes.Repeat(buf[c.Offset:c.Offset+1], c.Len), buf[c.Offset:c.Offset+c.Len])
			}
			if c.Released {
				post()
			}
		}
		a.got, b.got = nil, nil
	}
	for _, buf := range memory {
		equal(t, make([]byte, room-length), buf[length:])
	}
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
