package fabric_test

import (
	"fmt"
	"log"

	"github.com/weft-go/weft/fabric"
)

func ExampleDiscover() {
	infos, err := fabric.Discover(fabric.Hints{
		Provider:     "sockets",
		Endpoint:     fabric.ReliableDatagram,
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.RemoteMemory,
		MemoryMode:   fabric.LocalRegistration | fabric.VirtualAddresses | fabric.ProviderKeys,
		Source:       "127.0.0.1",
		OrderedSends: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	best := infos[0]
	fmt.Println(best.Provider(), best.Domain(), best.Endpoint(), best.AddressFormat())
	fmt.Println("in order:", best.OrderedSends(), "and remote memory:", best.Capabilities()&fabric.RemoteMemory)
	// Output:
	// sockets lo FI_EP_RDM FI_SOCKADDR_IN
	// in order: true and remote memory: FI_RMA
}

func ExampleVariables() {
	variables, err := fabric.Variables()
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range variables {
		if v.Name == "FI_PROVIDER" {
			fmt.Println(v.Name, v.Type)
		}
	}
	// Output: FI_PROVIDER text
}

// It is not run: what libfabric writes goes to the standard error, and the level stays.
func ExampleSetLogLevel() {
	if err := fabric.SetLogLevel(fabric.LogInfo); err != nil {
		log.Fatal(err)
	}
	// libfabric now says on the standard error what it looks at and why it
	// passes a provider over.
}
