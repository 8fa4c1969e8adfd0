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

// An arena is registered once, and every buffer in it has a descriptor and an
// address for peers. Huge pages are asked for, where the kernel has them.
func ExampleArena() {
	arena, err := fabric.NewArenaWith(1<<20, fabric.ArenaConfig{Pages: fabric.TransparentHugePages})
	if errors.Is(err, fabric.ErrNotSupported) {
		arena, err = fabric.NewArena(1 << 20)
	}
	check(err)
	defer arena.Close()
	ends := openTwoEnds("sockets")
	defer ends.close()
	region, err := arena.Register(ends.domain, fabric.RegionConfig{Access: fabric.AccessAll})
	check(err)
	fmt.Println(errors.Is(arena.Close(), fabric.ErrBusy)) // the region still uses it

	buffer := arena.Bytes()[4096:8192]
	where, err := region.RemoteOf(buffer)
	check(err)
	copy(buffer, "to be read by a peer")
	got := make([]byte, 5)
	read := fabric.Op{Kind: fabric.OpRead, Peer: ends.toFar, Remote: where, Buf: got, Descriptor: region.Descriptor()}
	fmt.Println(ends.do(read).Err, string(got))
	check(region.Close())
	// Output:
	// true
	// <nil> to be
}

// Memory of an accelerator is registered by its address and the interface that
// allocated it, in a domain with the capability DeviceBuffers. Where there is
// none, a program copies through the host's memory.
func ExampleDeviceMemory() {
	ends := openDomainOf("sockets", fabric.Messages|fabric.RemoteMemory)
	defer ends.close()
	memory := fabric.DeviceMemory{
		Interface: fabric.CUDAMemory, Device: 0,
		Address: 0x7f2a00000000, Length: 1 << 20, // as cudaMalloc gave it
	}
	region, err := ends.domain.RegisterDevice(memory, fabric.RegionConfig{Access: fabric.AccessAll})
	switch {
	case errors.Is(err, fabric.ErrNotSupported):
		fmt.Println("not here:", memory.Interface)
	case err != nil:
		check(err)
	default:
		defer region.Close() // region.Descriptor() is for operations with the memory
	}
	// Output: not here: cuda
}

// A counter that is bound to an endpoint counts what has ended, and a goroutine
// can wait for it.
func ExampleCounter_Wait() {
	ends := openDomainOf("sockets", fabric.Messages|fabric.RemoteMemory)
	defer ends.close()
	written, err := ends.domain.OpenCounter()
	ends.opened(written.Close, err)
	ends.openEndpoints(fabric.CounterBinding{Counter: written, Events: fabric.CountWrites})
	theirs := make([]byte, 3)
	region, err := ends.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessRemoteWrite}, theirs)
	check(err)
	defer region.Close()
	posts := make([]fabric.Op, 3)
	for i := range posts {
		where, err := region.RemoteOf(theirs[i : i+1])
		check(err)
		posts[i] = fabric.Op{Kind: fabric.OpWrite, Peer: ends.toFar, Remote: where, Buf: []byte{'x'}, Flags: fabric.DeliveryComplete}
	}
	_, err = ends.near.Turn(posts, nil, 0)
	check(err)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(written.Wait(ctx, 3), string(theirs))
	// Output: <nil> xxx
}

// A counter tells how many operations have ended, and can be changed by hand.
func ExampleCounter() {
	ends := openTwoEnds("sockets")
	defer ends.close()
	counter, err := ends.domain.OpenCounter()
	check(err)
	defer counter.Close()
	// Here it counts by hand.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() { check(counter.Add(3)) }()
	fmt.Println(counter.Wait(ctx, 3))
	fmt.Println(counter.Read())
	// Output:
	// <nil>
	// 3 <nil>
}
