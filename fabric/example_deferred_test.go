package fabric_test

import (
	"context"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// A deferred operation begins when its counter has reached a threshold.
func ExampleDeferred() {
	ends := openTwoEnds("sockets")
	defer ends.close()
	arena, err := fabric.NewArena(4096)
	check(err)
	defer arena.Close()
	region, err := arena.Register(ends.domain, fabric.RegionConfig{Access: fabric.AccessRemoteWrite})
	check(err)
	defer region.Close()
	where, err := region.RemoteOf(arena.Bytes()[:5])
	check(err)
	counter, err := ends.domain.OpenCounter()
	check(err)
	defer counter.Close()

	write := fabric.Op{Kind: fabric.OpWrite, Peer: ends.toFar, Buf: []byte("later"), Remote: where, Flags: fabric.DeliveryComplete}
	deferred, err := ends.near.Defer(write, fabric.Trigger{Counter: counter, Threshold: 2}, nil)
	check(err)
	fmt.Printf("%q\n", arena.Bytes()[:5])
	check(counter.Add(2))
	check(deferred.Counter().Wait(context.Background(), 1))
	fmt.Printf("%q %v\n", arena.Bytes()[:5], deferred.Close())
	// Output:
	// "\x00\x00\x00\x00\x00"
	// "later" <nil>
}
