package fabric_test

import (
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// One side registers memory and tells the other where it is, in a form that
// holds whatever the memory mode of the domain; the other writes there.
func ExampleRegion_Remote() {
	domain, near, peer, closeAll := twoEndpoints("sockets")
	defer closeAll()

	arena, err := fabric.NewArena(1 << 16)
	check(err)
	defer arena.Close()
	region, err := arena.Register(domain, fabric.RegionConfig{Access: fabric.AccessRemoteRead | fabric.AccessRemoteWrite})
	check(err)
	defer region.Close()
	remote, err := region.Remote()
	check(err)
	told, err := remote.MarshalBinary() // and off to the peer
	check(err)

	// At the peer:
	var heard fabric.RemoteRegion
	check(heard.UnmarshalBinary(told))
	where, err := heard.At(100, 5)
	check(err)
	posts := []fabric.Op{{Kind: fabric.OpWrite, Peer: peer, Buf: []byte("hello"), Remote: where, Flags: fabric.DeliveryComplete}}
	done := make([]fabric.Completion, 1)
	for n := 0; n == 0; {
		n, err = near.Turn(posts, done, 0)
		check(err)
		if len(posts) > 0 && posts[0].Result != fabric.Refused {
			posts = nil
		}
	}
	fmt.Println(done[0].Err, string(arena.Bytes()[100:105]))
	// Output: <nil> hello
}

// twoEndpoints opens two endpoints of one domain; the first knows the second.
func twoEndpoints(provider string) (d *fabric.Domain, near *fabric.Endpoint, peer fabric.Address, closeAll func()) {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: provider, Source: "127.0.0.1", Endpoint: fabric.ReliableDatagram,
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.RemoteMemory,
		MemoryMode:   fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys,
	})
	check(err)
	var closers []func() error
	closeAll = func() {
		for i := len(closers) - 1; i >= 0; i-- {
			check(closers[i]())
		}
	}
	must := func(closer func() error, err error) {
		check(err)
		closers = append(closers, closer)
	}
	f, err := infos[0].OpenFabric()
	must(f.Close, err)
	d, err = f.OpenDomain(infos[0])
	must(d.Close, err)
	events, err := f.OpenEventQueue()
	must(events.Close, err)
	var ends [2]*fabric.Endpoint
	var vectors [2]*fabric.AddressVector
	for i := range ends {
		queue, err := d.OpenCompletionQueue(64)
		must(queue.Close, err)
		vectors[i], err = d.OpenAddressVector()
		must(vectors[i].Close, err)
		ends[i], err = d.OpenEndpoint()
		must(ends[i].Close, err)
		check(ends[i].Enable(vectors[i], queue, events))
	}
	name, err := ends[1].Name()
	check(err)
	peer, err = vectors[0].Insert(name)
	check(err)
	return d, ends[0], peer, closeAll
}
