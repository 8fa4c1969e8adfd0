package fabric_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/weft-go/weft/fabric"
)

// What the provider or the library does not have is ErrNotSupported, which a
// program may pass over.
func ExampleEndpoint_SetSizeOption() {
	if err := setOptions(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// FI_OPT_MIN_MULTI_RECV is 4096
	// no FI_OPT_EFA_RNR_RETRY here
}

func setOptions() (err error) {
	choice, err := fabric.Choose(fabric.Preference{Providers: []string{"sockets"}, Source: "127.0.0.1"})
	if err != nil {
		return err
	}
	network, err := choice.Info.OpenFabric()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	domain, err := network.OpenDomain(choice.Info)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, domain.Close()) }()
	endpoint, err := domain.OpenEndpoint()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endpoint.Close()) }()

	if err := endpoint.SetSizeOption(fabric.OptionMinMultiReceive, 4096); err != nil {
		return err
	}
	least, err := endpoint.SizeOption(fabric.OptionMinMultiReceive)
	if err != nil {
		return err
	}
	fmt.Println(fabric.OptionMinMultiReceive, "is", least)
	if err := endpoint.SetSizeOption(fabric.OptionEFARetries, 7); errors.Is(err, fabric.ErrNotSupported) {
		fmt.Println("no", fabric.OptionEFARetries, "here")
	}
	return nil
}
