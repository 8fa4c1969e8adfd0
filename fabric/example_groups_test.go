package fabric_test

import (
	"fmt"
	"net"

	"github.com/weft-go/weft/fabric"
)

// Sets of the peers of an address vector, for collectives among them.
func ExampleAddressSet() {
	ends := openDomainOf("tcp;ofi_rxm", fabric.Messages|fabric.TaggedMessages|fabric.Collectives)
	defer ends.close()
	peers, err := ends.domain.OpenAddressVector()
	check(err)
	defer peers.Close()
	inserted, err := peers.InsertSymmetric("127.0.0.1", 1, "4000", 4)
	check(err)
	var all []fabric.Address
	for _, peer := range inserted {
		check(peer.Err)
		all = append(all, peer.Address)
	}

	set, err := peers.OpenSet(fabric.AddressSetConfig{Members: all[:3]})
	check(err)
	defer set.Close()
	last, err := peers.OpenSet(fabric.AddressSetConfig{Members: all[1:]})
	check(err)
	defer last.Close()
	check(set.Intersect(last))
	fmt.Println(set.Members())
	check(set.Insert(all[0]))
	fmt.Println(set.Members())
	// Output:
	// [1 2]
	// [1 2 0]
}

// An endpoint joins a multicast group: what is sent to the group's address, with
// ToMulticast, comes to every member.
func ExampleMulticastGroup() {
	ends := openDomainFor(fabric.Hints{
		Provider: "udp", Endpoint: fabric.Datagram, Capabilities: fabric.Messages | fabric.Multicast, Source: "127.0.0.1",
	})
	defer ends.close()
	endpoint, _, events := ends.openEndpoint()

	// The address has the format of the endpoint's own, here a sockaddr_in.
	address, err := endpoint.Name()
	check(err)
	copy(address[4:8], net.IPv4(224, 0, 0, 1).To4())
	group, err := endpoint.JoinMulticast(address, fabric.CanSend)
	check(err)
	defer group.Close()
	event, _, err := events.Read()
	check(err)
	joined, ok := event.(fabric.JoinCompleteEvent)
	fmt.Println(ok && joined.Multicast == group)
	// What is sent to it: fabric.Op{Kind: fabric.OpSend, Peer: group.Address(),
	// Flags: fabric.ToMulticast, ...}
	// Output: true
}
