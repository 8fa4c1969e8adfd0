package fabric_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/weft-go/weft/fabric"
)

func Example() {
	if err := hello(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// tagged receive of 5 bytes: hello
}

// hello sends a message from one port to another. In a program they are in two
// processes, each of which does its half of this.
func hello() (err error) {
	choice, err := fabric.Choose(fabric.Preference{Providers: []string{"efa", "tcp"}, Source: "127.0.0.1"})
	if err != nil {
		return err
	}
	var ports [2]*fabric.Port
	for i := range ports {
		if ports[i], err = fabric.OpenPort(choice.Info, fabric.PortConfig{}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ports[i].Close()) }()
	}
	peer, err := ports[0].Insert(ports[1].LocalAddress())
	if err != nil {
		return err
	}
	got := make([]byte, 64)
	posts := [2][]fabric.Op{
		{{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 7, Buf: []byte("hello")}},
		{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 7, Buf: got}},
	}
	done := make([]fabric.Completion, 8)
	for complete := 0; complete < 2; {
		for i, port := range ports {
			n, err := port.Turn(posts[i], done, 0)
			if err != nil {
				return err
			}
			if len(posts[i]) > 0 {
				switch op := posts[i][0]; op.Result {
				case fabric.Posted:
					posts[i] = nil
				case fabric.Failed:
					return op.Err
				case fabric.Refused: // no room now: offered again
				}
			}
			for _, c := range done[:n] {
				if c.Err != nil {
					return c.Err
				}
				if c.Kind == fabric.OpTaggedReceive {
					fmt.Printf("%v of %d bytes: %s\n", c.Kind, c.Len, got[:c.Len])
				}
			}
			complete += n
		}
	}
	return nil
}
