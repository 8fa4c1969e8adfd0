package fabric_test

import (
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// Two endpoints add up their numbers. In a program they are in two processes,
// each with its own half of what is done here.
func ExampleGroup() {
	ends := openDomainOf("tcp;ofi_rxm", fabric.Messages|fabric.TaggedMessages|fabric.Collectives)
	defer ends.close()
	type adder struct {
		endpoint *fabric.Endpoint
		peers    *fabric.AddressVector
		events   *fabric.EventQueue
		group    *fabric.Group
		sum      []uint32
	}
	var adders [2]adder
	var names [2][]byte
	for i := range adders {
		a := &adders[i]
		a.endpoint, a.peers, a.events = ends.openEndpoint()
		var err error
		names[i], err = a.endpoint.Name()
		check(err)
	}
	for i := range adders {
		a := &adders[i]
		_, err := a.peers.InsertAll(names[:]) // as 0 and 1, for both
		check(err)
		set, err := a.peers.OpenSet(fabric.AddressSetConfig{Members: []fabric.Address{0, 1}})
		ends.opened(set.Close, err)
		a.group, err = a.endpoint.JoinCollective(set, 0)
		ends.opened(a.group.Close, err)
	}
	// Both must go on until both have joined, and until both are complete.
	done := make([]fabric.Completion, 1)
	for joined := 0; joined < 2; {
		for _, a := range adders {
			_, err := a.endpoint.Turn(nil, done, 0)
			check(err)
			_, ok, err := a.events.Read()
			check(err)
			if ok {
				joined++
			}
		}
	}
	for i := range adders {
		part := [][]uint32{{1, 2, 3}, {10, 20, 30}}[i]
		adders[i].sum = make([]uint32, 3)
		_, err := adders[i].group.AllReduce(fabric.Collective{
			Buf: fabric.BytesOf(part), Result: fabric.BytesOf(adders[i].sum), Type: fabric.Uint32, Operation: fabric.Sum,
		})
		check(err)
	}
	for complete := 0; complete < 2; {
		for _, a := range adders {
			n, err := a.endpoint.Turn(nil, done, 0)
			check(err)
			complete += n
		}
	}
	fmt.Println(adders[0].sum, adders[1].sum)
	// Output: [11 22 33] [11 22 33]
}
