package fabric_test

import (
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// One side registers memory and tells the other where it is, in a form that
// holds whatever the memory mode of the domain; the other writes there.
func ExampleRemoteRegion() {
	ends := openTwoEnds("sockets")
	defer ends.close()

	arena, err := fabric.NewArena(1 << 16)
	check(err)
	defer arena.Close()
	region, err := arena.Register(ends.domain, fabric.RegionConfig{Access: fabric.AccessRemoteRead | fabric.AccessRemoteWrite})
	check(err)
	defer region.Close()
	remote, err := region.Remote()
	check(err)
	told, err := remote.MarshalBinary() // and off to the peer
	check(err)

	// At the peer:
	var heard fabric.RemoteRegion
	check(heard.UnmarshalBinary(told))
	mapped, err := ends.domain.MapRemote(heard) // which only raw keys need
	check(err)
	defer mapped.Close()
	where, err := mapped.At(100, 5)
	check(err)
	done := ends.do(fabric.Op{Kind: fabric.OpWrite, Peer: ends.toFar, Buf: []byte("hello"), Remote: where, Flags: fabric.DeliveryComplete})
	fmt.Println(done.Err, string(arena.Bytes()[100:105]))
	// Output: <nil> hello
}

// Memory is registered once and then used by many operations. A device that
// wants local registration is given the region's descriptor with each buffer.
func ExampleRegion() {
	ends := openTwoEnds("sockets")
	defer ends.close()
	buffer := make([]byte, 4096) // pinned as long as it is registered
	region, err := ends.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessMessages}, buffer)
	check(err)
	copy(buffer, "registered")
	ends.receive(make([]byte, 64))
	done := ends.do(fabric.Op{Kind: fabric.OpTaggedSend, Peer: ends.toFar, Buf: buffer[:10], Descriptor: region.Descriptor()})
	fmt.Println(region.Len(), region.Access(), done.Err)
	check(region.Close())
	fmt.Println(fabric.IsClosed(region.Enable()))
	// Output:
	// 4096 send, receive <nil>
	// true
}

// What a peer told about its memory is mapped once, and read piece by piece. Only raw
// keys need that, but a program that does it works with all.
func ExampleMappedRegion() {
	ends := openTwoEnds("sockets")
	defer ends.close()
	arena, err := fabric.NewArena(1 << 12)
	check(err)
	defer arena.Close()
	copy(arena.Bytes(), "far away")
	region, err := arena.Register(ends.domain, fabric.RegionConfig{Access: fabric.AccessRemoteRead})
	check(err)
	defer region.Close()
	told, err := region.Remote()
	check(err)

	mapped, err := ends.domain.MapRemote(told)
	check(err)
	for _, piece := range []struct{ from, length uint64 }{{0, 3}, {4, 4}} {
		where, err := mapped.At(piece.from, piece.length)
		check(err)
		got := make([]byte, piece.length)
		done := ends.do(fabric.Op{Kind: fabric.OpRead, Peer: ends.toFar, Buf: got, Remote: where})
		fmt.Println(done.Err, string(got))
	}
	_, err = mapped.At(told.Length, 1)
	fmt.Println(errors.Is(err, fabric.ErrInvalid))
	check(mapped.Close())
	// Output:
	// <nil> far
	// <nil> away
	// true
}
