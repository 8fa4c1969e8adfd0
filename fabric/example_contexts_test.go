package fabric_test

import (
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// An endpoint with two contexts for each direction, for two threads, sends from
// its first to its second.
func ExampleScalableEndpoint() {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.ReliableDatagram, Source: "127.0.0.1",
		Capabilities: fabric.Messages | fabric.NamedReceiveContexts,
	})
	check(err)
	f, err := infos[0].OpenFabric()
	check(err)
	d, err := f.OpenDomain(infos[0])
	check(err)
	const bits = 1 // of an address, to name one of two contexts
	v, err := d.OpenAddressVectorConfig(fabric.AddressVectorConfig{ReceiveBits: bits})
	check(err)
	q, err := d.OpenCompletionQueue(64)
	check(err)

	info, err := infos[0].WithContexts(2, 2)
	check(err)
	s, err := d.OpenScalableEndpoint(info)
	check(err)
	check(s.Enable(v, nil))
	send, err := s.OpenSend(0)
	check(err)
	check(send.Enable(q))
	receive, err := s.OpenReceive(1)
	check(err)
	check(receive.Enable(q))

	name, err := s.Name()
	check(err)
	self, err := v.Insert(name)
	check(err)
	got := make([]byte, 16)
	_, err = receive.Turn([]fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got}}, nil, 0)
	check(err)
	posts := []fabric.Op{{Kind: fabric.OpSend, Peer: self.Context(1, bits), Buf: []byte("to the second")}}
	done := make([]fabric.Completion, 1)
	for received := false; !received; {
		_, err := send.Turn(posts, nil, 0)
		check(err)
		if len(posts) > 0 && posts[0].Result == fabric.Posted {
			posts = nil
		}
		n, err := receive.TurnWait(nil, done, 1)
		check(err)
		received = n == 1 && done[0].Kind == fabric.OpReceive
	}
	fmt.Println(string(got[:done[0].Len]))
	check(errors.Join(send.Close(), receive.Close(), s.Close(), q.Close(), v.Close(), d.Close(), f.Close()))
	// Output: to the second
}

// A receive context takes what comes to any of its endpoints.
func ExampleSharedReceive() {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.ReliableDatagram, Source: "127.0.0.1", Capabilities: fabric.Messages,
	})
	check(err)
	f, err := infos[0].OpenFabric()
	check(err)
	d, err := f.OpenDomain(infos[0])
	check(err)
	events, err := f.OpenEventQueue()
	check(err)
	v, err := d.OpenAddressVector()
	check(err)
	q, err := d.OpenCompletionQueue(64)
	check(err)

	info, err := infos[0].WithContexts(1, fabric.SharedContext)
	check(err)
	pool, err := d.OpenSharedReceive(info, q)
	check(err)
	var endpoints [2]*fabric.Endpoint
	for i := range endpoints {
		endpoints[i], err = d.OpenEndpointFor(info)
		check(err)
		check(endpoints[i].EnableWith(fabric.Bindings{Vector: v, Events: events, Send: q, Receive: q, SharedReceive: pool}))
	}
	fmt.Println("endpoints that share:", len(endpoints))
	err = pool.Close()
	fmt.Println(errors.Is(err, fabric.ErrBusy))
	check(errors.Join(endpoints[0].Close(), endpoints[1].Close(), pool.Close()))
	check(errors.Join(q.Close(), v.Close(), events.Close(), d.Close(), f.Close()))
	// Output:
	// endpoints that share: 2
	// true
}

// Endpoints share one send context where the provider has those that work;
// elsewhere each has its own.
func ExampleSharedSend() {
	ends := openDomainOf("sockets", fabric.Messages)
	defer ends.close()
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.ReliableDatagram, Source: "127.0.0.1", Capabilities: fabric.Messages,
	})
	check(err)
	info := infos[0]
	shared, err := ends.domain.OpenSharedSend(info)
	switch {
	case errors.Is(err, fabric.ErrNotSupported):
		fmt.Println("a send context for each endpoint")
	case err == nil:
		// Endpoints of this info have it as Bindings.SharedSend.
		info, err = info.WithContexts(fabric.SharedContext, 1)
		ends.opened(shared.Close, err)
	default:
		check(err)
	}
	// Output: a send context for each endpoint
}

// Each context of a scalable endpoint is for one thread: it has its place in the
// endpoint, a direction, and is closed before it.
func ExampleContext() {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.ReliableDatagram, Source: "127.0.0.1", Capabilities: fabric.Messages,
	})
	check(err)
	f, err := infos[0].OpenFabric()
	check(err)
	d, err := f.OpenDomain(infos[0])
	check(err)
	v, err := d.OpenAddressVector()
	check(err)
	info, err := infos[0].WithContexts(4, 1)
	check(err)
	s, err := d.OpenScalableEndpoint(info)
	check(err)
	check(s.Enable(v, nil))

	var send [4]*fabric.Context
	var queues [4]*fabric.CompletionQueue
	for i := range send {
		queues[i], err = d.OpenCompletionQueue(64)
		check(err)
		send[i], err = s.OpenSend(i)
		check(err)
		check(send[i].Enable(queues[i]))
	}
	fmt.Println("threads that can send:", len(send))
	fmt.Println(errors.Is(s.Close(), fabric.ErrBusy))
	for i := range send {
		check(errors.Join(send[i].Close(), queues[i].Close()))
	}
	check(errors.Join(s.Close(), v.Close(), d.Close(), f.Close()))
	// Output:
	// threads that can send: 4
	// true
}
