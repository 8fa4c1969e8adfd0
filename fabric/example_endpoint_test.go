package fabric_test

import (
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// The parts of an endpoint, opened one by one, and closed in reverse order. It
// sends a message to itself.
func ExampleEndpoint() {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "tcp", Endpoint: fabric.ReliableDatagram, Capabilities: fabric.Messages, Source: "127.0.0.1",
		MemoryMode: fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys,
	})
	check(err)
	network, err := infos[0].OpenFabric()
	check(err)
	events, err := network.OpenEventQueue()
	check(err)
	domain, err := network.OpenDomain(infos[0])
	check(err)
	queue, err := domain.OpenCompletionQueue(64)
	check(err)
	peers, err := domain.OpenAddressVector()
	check(err)
	endpoint, err := domain.OpenEndpoint()
	check(err)
	check(endpoint.Enable(peers, queue, events))
	name, err := endpoint.Name()
	check(err)
	self, err := peers.Insert(name)
	check(err)

	got := make([]byte, 64)
	posts := []fabric.Op{
		{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: 1},
		{Kind: fabric.OpSend, Peer: self, Buf: []byte("to myself"), Context: 2},
	}
	done := make([]fabric.Completion, 8)
	for complete := 0; complete < 2; {
		n, err := endpoint.Turn(posts, done, 0)
		check(err)
		for len(posts) > 0 && posts[0].Result == fabric.Posted {
			posts = posts[1:] // what is refused is offered again
		}
		for _, c := range done[:n] {
			check(c.Err)
			if c.Context == 1 {
				fmt.Println(string(got[:c.Len]))
			}
		}
		complete += n
	}
	check(errors.Join(endpoint.Close(), peers.Close(), queue.Close(), domain.Close(), events.Close(), network.Close()))
	// Output: to myself
}

// An alias of an endpoint has flags of its own for operations without flags.
func ExampleAlias() {
	ends := openTwoEnds("sockets")
	defer ends.close()
	delivered, err := ends.near.OpenAlias(fabric.Sending, fabric.DeliveryComplete)
	check(err)
	defer delivered.Close()

	got := make([]byte, 8)
	ends.receive(got)
	posts := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: ends.toFar, Buf: []byte("there")}}
	done := make([]fabric.Completion, 1)
	for n := 0; n == 0; {
		n, err = delivered.TurnWait(posts, done, 1)
		check(err)
		if len(posts) > 0 && posts[0].Result != fabric.Refused {
			posts = nil
		}
	}
	// The completion says that the message is in the peer's memory.
	fmt.Println(done[0].Err, string(got[:5]))
	// Output: <nil> there
}

// A handle knows what is open in it, and is closed after that.
func ExampleFabric() {
	infos, err := fabric.Discover(fabric.Hints{Provider: "tcp", Endpoint: fabric.Connected, Source: "127.0.0.1"})
	check(err)
	network, err := infos[0].OpenFabric()
	check(err)
	events, err := network.OpenEventQueue()
	check(err)
	domain, err := network.OpenDomain(infos[0])
	check(err)
	err = network.Close()
	fmt.Println(errors.Is(err, fabric.ErrBusy))
	fmt.Println(err.(*fabric.Error).Detail)
	fmt.Println(domain.Close(), events.Close(), network.Close())
	// Output:
	// true
	// still open: 1 domain, 1 event queue
	// <nil> <nil> <nil>
}

// A domain says what it can do before there is an endpoint.
func ExampleDomain() {
	ends := openDomainOf("sockets", fabric.Atomics)
	defer ends.close()
	for _, kind := range []fabric.OpKind{fabric.OpAtomic, fabric.OpFetch} {
		most, err := ends.domain.AtomicLimit(kind, fabric.Uint64, fabric.Sum)
		fmt.Println(kind, most > 0, err)
	}
	_, err := ends.domain.AtomicLimit(fabric.OpAtomic, fabric.Complex64, fabric.Min)
	fmt.Println(errors.Is(err, fabric.ErrNotSupported))
	// Output:
	// atomic true <nil>
	// fetching atomic true <nil>
	// true
}
