// Command copy sends a file to another machine, and says so only when that has all of it,
// with the same sha256.
//
//	go run ./examples/copy -listen 127.0.0.1:7470 -dir /tmp     # in one terminal,
//	go run ./examples/copy README.md 127.0.0.1:7470             # and in another
//
// For whole trees, modes and progress there is the command: weft send, weft recv.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/weft-go/weft/efa"
)

func main() {
	listen := flag.String("listen", "", "receive at this `address`")
	dir := flag.String("dir", ".", "put what is received into this `folder`")
	provider := flag.String("provider", "", "the libfabric provider; empty for the best there is")
	flag.Parse()
	log.SetFlags(0)
	config := &efa.Config{MaxMessage: chunk}
	if *provider != "" {
		config.Providers, config.Require = []string{*provider}, true
	}
	if err := run(*listen, *dir, config); err != nil {
		log.Fatal(err)
	}
}

// run does what it is told until that is done, or a signal comes.
func run(listen, dir string, config *efa.Config) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	switch {
	case listen != "":
		return serve(ctx, listen, dir, config)
	case flag.NArg() == 2:
		return send(ctx, flag.Arg(0), flag.Arg(1), config)
	default:
		return errors.New("usage: copy -listen ADDRESS [-dir FOLDER], or copy FILE ADDRESS")
	}
}

// serve receives a file from each connection, until ctx ends.
func serve(ctx context.Context, address, dir string, config *efa.Config) error {
	// A file that is opened in the root is below it, whatever name the peer gives.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	l, err := efa.Listen(ctx, address, config)
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Printf("listening on %s over %s\n", l.Addr(), l.Provider())
	var senders sync.WaitGroup
	defer senders.Wait()
	for {
		c, err := l.AcceptConn(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		senders.Go(func() {
			defer c.Close()
			name, size, err := receive(ctx, c, root)
			if err != nil {
				log.Print(err)
				return
			}
			fmt.Printf("%s: %d bytes\n", name, size)
		})
	}
}
