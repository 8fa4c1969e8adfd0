package fabric_test

import (
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// One end writes to the other's memory, and reads it. The other has registered
// it, told where it is, and posts nothing.
func ExampleOp_remoteMemory() {
	ends := openTwoEnds("sockets")
	defer ends.close()
	theirs := make([]byte, 64)
	region, err := ends.domain.RegisterMemory(fabric.RegionConfig{
		Access: fabric.AccessRemoteRead | fabric.AccessRemoteWrite,
	}, theirs)
	check(err)
	defer region.Close()
	where, err := region.RemoteOf(theirs[8:24])
	check(err)

	write := fabric.Op{
		Kind: fabric.OpWrite, Peer: ends.toFar, Remote: where, Buf: []byte("one-sided"),
		Flags: fabric.DeliveryComplete, // completes when it is in the peer's memory
	}
	fmt.Println(ends.do(write).Err, string(theirs[8:17]))

	mine := make([]byte, 9)
	read := fabric.Op{Kind: fabric.OpRead, Peer: ends.toFar, Remote: where, Buf: mine}
	fmt.Println(ends.do(read).Err, string(mine))
	// Output:
	// <nil> one-sided
	// <nil> one-sided
}

// Fetch-and-add: two numbers in a peer's memory are added to, and what was there
// comes back.
func ExampleAtomic() {
	ends := openDomainOf("sockets", fabric.Atomics)
	defer ends.close()
	ends.openEndpoints()
	theirs := []int64{100, 200}
	memory := fabric.BytesOf(theirs)
	region, err := ends.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory)
	check(err)
	defer region.Close()
	where, err := region.RemoteOf(memory)
	check(err)
	most, err := ends.near.AtomicLimit(fabric.OpFetch, fabric.TypeOf[int64](), fabric.Sum)
	check(err)

	add, before := []int64{1, -1}, make([]int64, 2)
	done := ends.do(fabric.Op{
		Kind: fabric.OpFetch, Peer: ends.toFar, Remote: where, Buf: fabric.BytesOf(add),
		Atomic: &fabric.Atomic{Type: fabric.TypeOf[int64](), Operation: fabric.Sum, Result: fabric.BytesOf(before)},
	})
	fmt.Println(done.Err, before, theirs, most >= 2)
	// Output: <nil> [100 200] [101 199] true
}

// A vector is one message from several buffers, and an immediate is a number
// that comes with its completion.
func ExampleOp_vector() {
	ends := openTwoEnds("sockets")
	defer ends.close()
	got := make([]byte, 64)
	ends.receive(got)
	sent := ends.do(fabric.Op{
		Kind: fabric.OpTaggedSend, Peer: ends.toFar, Vector: [][]byte{[]byte("head, "), []byte("body")},
		Flags: fabric.Immediate, Immediate: 42,
	})
	check(sent.Err)
	done := make([]fabric.Completion, 1)
	for n := 0; n == 0; {
		var err error
		n, err = ends.far.TurnWait(nil, done, 1)
		check(err)
	}
	fmt.Printf("%s, with %d\n", got[:done[0].Len], done[0].Immediate)
	// Output: head, body, with 42
}

// One posted buffer takes message after message, until it is released: here by the second one, which
// leaves less than 8 bytes.
func ExampleOp_multiReceive() {
	ends := openDomainOf("sockets", fabric.Messages|fabric.MultiReceiveBuffers)
	defer ends.close()
	ends.openEndpoints()
	check(ends.far.SetSizeOption(fabric.OptionMinMultiReceive, 8))
	buf := make([]byte, 20)
	post := func() {
		posts := []fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: buf, Flags: fabric.MultiReceive}}
		_, err := ends.far.Turn(posts, nil, 0)
		check(err)
		check(posts[0].Err)
	}
	post()
	done := make([]fabric.Completion, 1)
	for _, text := range []string{"message 1", "message 2"} {
		check(ends.do(fabric.Op{Kind: fabric.OpSend, Peer: ends.toFar, Buf: []byte(text)}).Err)
		for got := false; !got; {
			n, err := ends.far.TurnWait(nil, done, 1)
			check(err)
			if n == 0 {
				continue
			}
			c := done[0]
			check(c.Err)
			if c.Len > 0 {
				fmt.Println(string(buf[c.Offset : c.Offset+c.Len]))
				got = true
			}
			if c.Released { // the buffer is the program's again
				post()
			}
		}
	}
	// Output:
	// message 1
	// message 2
}
