package fabric_test

import (
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// What went wrong with an operation is in its completion; the error of Turn or
// Read is about the queue as a whole.
func ExampleCompletionQueue() {
	ends := openTwoEnds("sockets")
	defer ends.close()
	receives := []fabric.Op{
		{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 64), Context: 1},
		{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: make([]byte, 64), Context: 2},
	}
	_, err := ends.far.Turn(receives, nil, 0)
	check(err)
	check(errors.Join(receives[0].Err, receives[1].Err))
	check(ends.far.Cancel(receives[0].Token))
	check(ends.do(fabric.Op{Kind: fabric.OpTaggedSend, Peer: ends.toFar, Tag: 2, Buf: []byte("hello")}).Err)

	done := make([]fabric.Completion, 16)
	for complete := 0; complete < len(receives); {
		n, err := ends.far.Turn(nil, done, 100) // looks up to 100 times more
		if err != nil {
			fmt.Println("the queue is of no use any more:", err)
			return
		}
		for _, c := range done[:n] {
			switch {
			case c.Err == nil:
				fmt.Println(c.Context, "received", c.Len, "bytes")
			case errors.Is(c.Err, fabric.ErrCanceled):
				fmt.Println(c.Context, "was cancelled")
			case errors.Is(c.Err, fabric.ErrTruncated), errors.Is(c.Err, fabric.ErrUnreachable):
				fmt.Println(c.Context, "failed:", c.Err)
			default:
				fmt.Println(c.Context, c.Err)
			}
		}
		complete += n
	}
	// Unordered output:
	// 1 was cancelled
	// 2 received 5 bytes
}

// An error is one of the package's conditions, and a system error number.
func ExampleError() {
	_, err := fabric.Discover(fabric.Hints{Provider: "no-such-provider"})
	fmt.Println(errors.Is(err, fabric.ErrNotFound))
	var e *fabric.Error
	if errors.As(err, &e) {
		fmt.Println(e.Op, e.Provider, int(e.Errno))
	}
	// Output:
	// true
	// fi_getinfo no-such-provider 61
}

// A test looks at what is still open at its end.
func ExampleOpenHandles() {
	before := len(fabric.OpenHandles())
	arena, err := fabric.NewArena(1 << 16)
	check(err)
	fmt.Println(len(fabric.OpenHandles())-before, fabric.MemoryInUse()["arenas"])
	check(arena.Close())
	fmt.Println(len(fabric.OpenHandles()) - before)
	// Output:
	// 1 65536
	// 0
}
