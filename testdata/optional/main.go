// Command optional is a program that can do with weft and without. Where there is no
// libfabric to call, whatever it opens says so, and it goes on over TCP.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

var openings = []struct {
	name string
	open func(ctx context.Context) error
}{
	{"fabric.Supported", func(context.Context) error { return fabric.Supported() }},
	{"fabric.Discover", func(context.Context) error { _, err := fabric.Discover(fabric.Hints{}); return err }},
	{"fabric.Choose", func(context.Context) error { _, err := fabric.Choose(fabric.Preference{}); return err }},
	{"fabric.Variables", func(context.Context) error { _, err := fabric.Variables(); return err }},
	{"fabric.SetLogLevel", func(context.Context) error { return fabric.SetLogLevel(fabric.LogWarn) }},
	{"efa.Open", func(context.Context) error { _, err := efa.Open(nil); return err }},
	{"efa.Listen", func(ctx context.Context) error { _, err := efa.Listen(ctx, "127.0.0.1:0", nil); return err }},
	{"efa.Dial", func(ctx context.Context) error { _, err := efa.Dial(ctx, "127.0.0.1:1", nil); return err }},
	{"comm.Open", func(ctx context.Context) error {
		world, err := comm.Open(ctx, comm.Config{Size: 1})
		if err != nil {
			return err
		}
		defer world.Close()
		return collective.Barrier(ctx, world)
	}},
}

func main() {
	for _, o := range openings {
		err := o.open(context.Background())
		fmt.Printf("%s: %v\n", o.name, err)
		if !errors.Is(err, fabric.ErrNotSupported) {
			os.Exit(1)
		}
	}
	fmt.Println("over TCP, then")
}
