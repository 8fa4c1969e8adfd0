package fabric_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/weft-go/weft/fabric"
)

// Two endpoints add up their numbers. In a program they are in two processes,
// each with its own half of what is done here.
func ExampleGroup_AllReduce() {
	if err := addUp(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// [11 22 33]
	// [11 22 33]
}

func addUp() (err error) {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "tcp;ofi_rxm", Endpoint: fabric.ReliableDatagram,
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.Collectives,
		MemoryMode:   fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys,
		Source:       "127.0.0.1",
	})
	if err != nil {
		return err
	}
	// What is opened is closed in reverse order, at the end.
	var opened []interface{ Close() error }
	defer func() {
		for i := len(opened) - 1; i >= 0; i-- {
			err = errors.Join(err, opened[i].Close())
		}
	}()
	network, err := infos[0].OpenFabric()
	if err != nil {
		return err
	}
	opened = append(opened, network)
	domain, err := network.OpenDomain(infos[0])
	if err != nil {
		return err
	}
	opened = append(opened, domain)

	type adder struct {
		endpoint *fabric.Endpoint
		peers    *fabric.AddressVector
		events   *fabric.EventQueue
		group    *fabric.Group
		sum      []uint32
	}
	var adders [2]adder
	var names [][]byte
	for i := range adders {
		a := &adders[i]
		queue, err := domain.OpenCompletionQueue(64)
		if err != nil {
			return err
		}
		opened = append(opened, queue)
		if a.events, err = network.OpenEventQueue(); err != nil {
			return err
		}
		opened = append(opened, a.events)
		if a.peers, err = domain.OpenAddressVector(); err != nil {
			return err
		}
		opened = append(opened, a.peers)
		if a.endpoint, err = domain.OpenEndpoint(); err != nil {
			return err
		}
		opened = append(opened, a.endpoint)
		if err = a.endpoint.Enable(a.peers, queue, a.events); err != nil {
			return err
		}
		name, err := a.endpoint.Name()
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	for i := range adders {
		a := &adders[i]
		if _, err = a.peers.InsertAll(names); err != nil {
			return err
		}
		set, err := a.peers.OpenSet(fabric.AddressSetConfig{Members: []fabric.Address{0, 1}})
		if err != nil {
			return err
		}
		opened = append(opened, set)
		if a.group, err = a.endpoint.JoinCollective(set, 0); err != nil {
			return err
		}
		opened = append(opened, a.group)
	}
	// Both must go on until both have joined.
	for joined := 0; joined < 2; {
		for _, a := range adders {
			if _, err = a.endpoint.Turn(nil, make([]fabric.Completion, 1), 0); err != nil {
				return err
			}
			if _, ok, err := a.events.Read(); err != nil {
				return err
			} else if ok {
				joined++
			}
		}
	}

	for i := range adders {
		a := &adders[i]
		a.sum = make([]uint32, 3)
		part := [][]uint32{{1, 2, 3}, {10, 20, 30}}[i]
		if _, err = a.group.AllReduce(fabric.Collective{
			Buf: fabric.BytesOf(part), Result: fabric.BytesOf(a.sum), Type: fabric.Uint32, Operation: fabric.Sum,
		}); err != nil {
			return err
		}
	}
	for done := 0; done < 2; {
		for _, a := range adders {
			n, err := a.endpoint.Turn(nil, make([]fabric.Completion, 1), 0)
			if err != nil {
				return err
			}
			done += n
		}
	}
	for _, a := range adders {
		fmt.Println(a.sum)
	}
	return nil
}
