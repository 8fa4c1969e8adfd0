package fabric_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/weft-go/weft/fabric"
)

// An address vector of a domain, and peers that are named by host and port.
func ExampleAddressVector() {
	if err := insertPeers(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0 fi_sockaddr_in://127.0.0.1:4000
	// 1 fi_sockaddr_in://127.0.0.1:4001
}

func insertPeers() (err error) {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "tcp", Endpoint: fabric.ReliableDatagram, Capabilities: fabric.Messages,
		MemoryMode: fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys,
		Source:     "127.0.0.1",
	})
	if err != nil {
		return err
	}
	network, err := infos[0].OpenFabric()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	domain, err := network.OpenDomain(infos[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, domain.Close()) }()
	peers, err := domain.OpenAddressVector()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peers.Close()) }()

	results, err := peers.InsertSymmetric("127.0.0.1", 1, "4000", 2)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
		address, err := peers.Lookup(r.Address)
		if err != nil {
			return err
		}
		text, err := peers.Text(address)
		if err != nil {
			return err
		}
		fmt.Println(r.Address, text)
	}
	return nil
}
