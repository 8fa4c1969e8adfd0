package fabric_test

import (
	"log"

	"github.com/weft-go/weft/fabric"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// twoEnds are two endpoints of one domain, each with a completion queue and an
// address vector of its own. Of two programs, each has one of them; the example
// of Endpoint shows how they are opened.
type twoEnds struct {
	fabric    *fabric.Fabric
	domain    *fabric.Domain
	near, far *fabric.Endpoint
	toFar     fabric.Address // in near's vector
	closers   []func() error
}

// openTwoEnds opens everything.
func openTwoEnds(provider string) *twoEnds {
	ends := openDomainOf(provider, fabric.Messages|fabric.TaggedMessages|fabric.RemoteMemory)
	ends.openEndpoints()
	return ends
}

// openDomainOf opens a domain with the capabilities.
func openDomainOf(provider string, capabilities fabric.Capabilities) *twoEnds {
	return openDomainFor(fabric.Hints{
		Provider: provider, Source: "127.0.0.1", Endpoint: fabric.ReliableDatagram, Capabilities: capabilities,
		MemoryMode: fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys,
	})
}

func openDomainFor(hints fabric.Hints) *twoEnds {
	infos, err := fabric.Discover(hints)
	check(err)
	ends := &twoEnds{}
	ends.fabric, err = infos[0].OpenFabric()
	ends.opened(ends.fabric.Close, err)
	ends.domain, err = ends.fabric.OpenDomain(infos[0])
	ends.opened(ends.domain.Close, err)
	return ends
}

// openEndpoints opens the two endpoints, the near one with counters.
func (ends *twoEnds) openEndpoints(counters ...fabric.CounterBinding) {
	near, vector, _ := ends.openEndpoint(counters...)
	far, _, _ := ends.openEndpoint()
	name, err := far.Name()
	check(err)
	ends.toFar, err = vector.Insert(name)
	check(err)
	ends.near, ends.far = near, far
}

func (ends *twoEnds) openEndpoint(counters ...fabric.CounterBinding) (*fabric.Endpoint, *fabric.AddressVector, *fabric.EventQueue) {
	events, err := ends.fabric.OpenEventQueue()
	ends.opened(events.Close, err)
	queue, err := ends.domain.OpenCompletionQueue(64)
	ends.opened(queue.Close, err)
	vector, err := ends.domain.OpenAddressVector()
	ends.opened(vector.Close, err)
	endpoint, err := ends.domain.OpenEndpoint()
	ends.opened(endpoint.Close, err)
	check(endpoint.EnableWith(fabric.Bindings{Vector: vector, Send: queue, Receive: queue, Events: events, Counters: counters}))
	return endpoint, vector, events
}

// opened notes what is to be closed at the end.
func (ends *twoEnds) opened(closer func() error, err error) {
	check(err)
	ends.closers = append(ends.closers, closer)
}

// close closes everything, the last opened first.
func (ends *twoEnds) close() {
	for i := len(ends.closers) - 1; i >= 0; i-- {
		check(ends.closers[i]())
	}
}

// do posts an operation at the near end and waits for its completion. sockets
// moves the far end on by itself; on other providers that would have to take
// turns too.
func (ends *twoEnds) do(op fabric.Op) fabric.Completion {
	posts, done := []fabric.Op{op}, make([]fabric.Completion, 1)
	for {
		n, err := ends.near.TurnWait(posts, done, 1)
		check(err)
		if n > 0 {
			return done[0]
		}
		if len(posts) > 0 && posts[0].Result != fabric.Refused {
			check(posts[0].Err)
			posts = nil
		}
	}
}

// receive posts a receive at the far end.
func (ends *twoEnds) receive(buf []byte) {
	posts := []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: buf}}
	_, err := ends.far.Turn(posts, nil, 0)
	check(err)
	check(posts[0].Err)
}
