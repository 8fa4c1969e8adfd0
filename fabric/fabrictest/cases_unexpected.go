package fabrictest

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

var unexpectedCases = []named{
	{"1000 in order", func(t *trial) { unexpectedMessages(t, 1000, false) }},
	{"1000 in reverse", func(t *trial) { unexpectedMessages(t, 1000, true) }},
	{"5000 in order", func(t *trial) { unexpectedMessages(t, 5000, false) }},
	{"2000 in reverse", func(t *trial) { unexpectedMessages(t, 2000, true) }}, // sockets looks through all that wait
}

// Messages that nobody has asked for yet wait until somebody does, whether the
// first or the last of them is asked for first.
func unexpectedMessages(t *trial, count int, reverse bool) {
	a, b := pairOf(t, fabric.TaggedMessages)
	for sent := range count {
		posts := []fabric.Op{{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: uint64(sent), Buf: binary.BigEndian.AppendUint64(nil, uint64(sent))}}
		t.until(fmt.Sprintf("room after %d messages that nobody has received", sent), func(try int) bool {
			if try > 0 {
				a.step(t, nil, try)
			}
			a.turn(t, posts)
			return posts[0].Result != fabric.Refused
		})
		noError(t, posts[0].Err)
	}
	buf := make([]byte, 8)
	for i := range count {
		tag := uint64(i)
		if reverse {
			tag = uint64(count - 1 - i)
		}
		clear(buf)
		b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: buf, Context: tag})
		t.until(fmt.Sprintf("message with tag %d, while %d messages wait", tag, count-i), func(try int) bool {
			b.step(t, nil, try)
			return len(b.got) > 0
		})
		c := b.done(t)
		equal(t, tag, c.Context)
		equal(t, tag, c.Tag)
		equal(t, 8, c.Len)
		equal(t, tag, binary.BigEndian.Uint64(buf))
	}
	idle(t, a, b)
}
