package fabric_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// Two endpoints of one program connect over tcp: one listens, the other calls.
func ExamplePassiveEndpoint() {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "tcp", Endpoint: fabric.Connected, Capabilities: fabric.Messages,
		MemoryMode: fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys,
		Source:     "127.0.0.1",
	})
	check(err)
	f, err := infos[0].OpenFabric()
	check(err)
	d, err := f.OpenDomain(infos[0])
	check(err)
	events, err := f.OpenEventQueue()
	check(err)

	listener, err := f.OpenPassiveEndpoint(infos[0])
	check(err)
	check(listener.Listen(events))
	address, err := listener.Name()
	check(err)

	q, err := d.OpenCompletionQueue(64)
	check(err)
	bindings := fabric.Bindings{Send: q, Receive: q, Events: events}
	caller, err := d.OpenEndpoint()
	check(err)
	check(caller.EnableWith(bindings))
	check(caller.Connect(address, []byte("hello")))

	var callee *fabric.Endpoint
	for connected := 0; connected < 2; {
		event, err := events.ReadWait(context.Background())
		check(err)
		switch event := event.(type) {
		case *fabric.ConnectionRequest:
			fmt.Printf("request: %s\n", event.Data)
			callee, err = event.OpenEndpoint(d)
			check(err)
			check(callee.EnableWith(bindings))
			check(callee.Accept([]byte("come in")))
		case fabric.ConnectedEvent:
			if event.Endpoint == caller {
				fmt.Printf("accepted: %s\n", event.Data)
			}
			connected++
		}
	}
	check(caller.Shutdown())
	check(errors.Join(caller.Close(), callee.Close(), listener.Close(), q.Close(), events.Close(), d.Close(), f.Close()))
	// Output:
	// request: hello
	// accepted: come in
}

// A listener that refuses a connection can say why.
func ExampleConnectionError() {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "tcp", Endpoint: fabric.Connected, Capabilities: fabric.Messages, Source: "127.0.0.1",
		MemoryMode: fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys,
	})
	check(err)
	f, err := infos[0].OpenFabric()
	check(err)
	d, err := f.OpenDomain(infos[0])
	check(err)
	events, err := f.OpenEventQueue()
	check(err)
	q, err := d.OpenCompletionQueue(64)
	check(err)
	listener, err := f.OpenPassiveEndpoint(infos[0])
	check(err)
	check(listener.Listen(events))
	address, err := listener.Name()
	check(err)
	caller, err := d.OpenEndpoint()
	check(err)
	check(caller.EnableWith(fabric.Bindings{Send: q, Receive: q, Events: events}))
	check(caller.Connect(address, []byte("may I?")))

	var refused *fabric.ConnectionError
	for !errors.As(err, &refused) {
		var event fabric.Event
		event, err = events.ReadWait(context.Background())
		if request, ok := event.(*fabric.ConnectionRequest); ok {
			check(request.Reject([]byte("not today")))
		}
	}
	fmt.Printf("%v: %s\n", errors.Is(refused, fabric.ErrUnreachable), refused.Data)
	check(errors.Join(caller.Close(), listener.Close(), q.Close(), events.Close(), d.Close(), f.Close()))
	// Output: true: not today
}

// What one goroutine writes, another reads.
func ExampleEventQueue() {
	infos, err := fabric.Discover(fabric.Hints{Provider: "tcp", Endpoint: fabric.Connected, Source: "127.0.0.1"})
	check(err)
	f, err := infos[0].OpenFabric()
	check(err)
	events, err := f.OpenEventQueue()
	check(err)
	go func() { check(events.Write(fabric.NotifyEvent{Data: 42})) }()
	event, err := events.ReadWait(context.Background())
	check(err)
	fmt.Println(event.(fabric.NotifyEvent).Data)
	check(errors.Join(events.Close(), f.Close()))
	// Output: 42
}
