package fabric_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-go/weft/fabric"
)

// A pool hands out the memory of an arena in pieces, without allocation.
func ExamplePool() {
	arena, err := fabric.NewArena(1 << 16)
	check(err)
	defer arena.Close()
	pool, err := fabric.NewPool(arena, fabric.PoolConfig{Smallest: 1 << 10, Largest: 1 << 16})
	check(err)
	defer pool.Close()

	buffer, err := pool.Get(1500)
	check(err)
	fmt.Println(len(buffer.Bytes()), cap(buffer.Bytes()), pool.Out())
	_, err = pool.Get(1 << 16)
	fmt.Println(errors.Is(err, fabric.ErrAgain))
	fmt.Println(buffer.Put(), pool.Out())
	fmt.Println(errors.Is(buffer.Put(), fabric.ErrInvalid))
	// Output:
	// 1500 2048 1
	// true
	// <nil> 0
	// true
}

// A counter tells how many operations have ended, and can be waited for.
func ExampleCounter() {
	domain, _, _, closeAll := twoEndpoints("sockets")
	defer closeAll()
	counter, err := domain.OpenCounter()
	check(err)
	defer counter.Close()
	// It would be bound to an endpoint by Endpoint.EnableWith; here it counts by
	// hand.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() { check(counter.Add(3)) }()
	fmt.Println(counter.Wait(ctx, 3))
	fmt.Println(counter.Read())
	// Output:
	// <nil>
	// 3 <nil>
}

// A deferred operation begins when its counter has reached a threshold.
func ExampleEndpoint_Defer() {
	domain, near, peer, closeAll := twoEndpoints("sockets")
	defer closeAll()
	arena, err := fabric.NewArena(4096)
	check(err)
	defer arena.Close()
	region, err := arena.Register(domain, fabric.RegionConfig{Access: fabric.AccessRemoteWrite})
	check(err)
	defer region.Close()
	where, err := region.RemoteOf(arena.Bytes()[:5])
	check(err)
	counter, err := domain.OpenCounter()
	check(err)
	defer counter.Close()

	write := fabric.Op{Kind: fabric.OpWrite, Peer: peer, Buf: []byte("later"), Remote: where, Flags: fabric.DeliveryComplete}
	deferred, err := near.Defer(write, fabric.Trigger{Counter: counter, Threshold: 2}, nil)
	check(err)
	fmt.Printf("%q\n", arena.Bytes()[:5])
	check(counter.Add(2))
	check(deferred.Counter().Wait(context.Background(), 1))
	fmt.Printf("%q %v\n", arena.Bytes()[:5], deferred.Close())
	// Output:
	// "\x00\x00\x00\x00\x00"
	// "later" <nil>
}
