// Command echo is a server that sends each message back, and a client of it.
//
//	go run ./examples/echo -listen 127.0.0.1:7470       # in one terminal,
//	go run ./examples/echo 127.0.0.1:7470 hello fabric  # and in another
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os/signal"
	"sync"
	"syscall"

	"github.com/weft-go/weft/efa"
)

// longest is the longest message that the server takes, in bytes.
const longest = 64 << 10

func main() {
	listen := flag.String("listen", "", "serve at this `address`")
	provider := flag.String("provider", "", "the libfabric provider; empty for the best there is")
	flag.Parse()
	log.SetFlags(0)
	// Who writes a longer message than the other side takes gets an error at once.
	config := &efa.Config{MaxMessage: longest}
	if *provider != "" {
		config.Providers, config.Require = []string{*provider}, true
	}
	if err := run(*listen, config); err != nil {
		log.Fatal(err)
	}
}

// run does what it is told until that is done, or a signal comes.
func run(listen string, config *efa.Config) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	switch {
	case listen != "":
		return serve(ctx, listen, config)
	case flag.NArg() >= 2:
		return call(ctx, flag.Arg(0), flag.Args()[1:], config)
	default:
		return errors.New("usage: echo -listen ADDRESS, or echo ADDRESS WORDS")
	}
}

// serve echoes on every connection until ctx ends.
func serve(ctx context.Context, address string, config *efa.Config) error {
	l, err := efa.Listen(ctx, address, config)
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Printf("listening on %s over %s\n", l.Addr(), l.Provider())
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		c, err := l.AcceptConn(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		clients.Go(func() {
			if err := echo(ctx, c); err != nil && ctx.Err() == nil {
				log.Print(err)
			}
		})
	}
}

// echo sends back what comes, until the client closes.
func echo(ctx context.Context, c *efa.Conn) error {
	defer c.Close()
	buf := make([]byte, longest)
	for {
		n, err := c.ReadMessage(ctx, buf)
		if errors.Is(err, io.EOF) {
			return c.Close()
		}
		if err != nil {
			return err
		}
		if err := c.WriteMessage(ctx, buf[:n]); err != nil {
			return err
		}
	}
}

// call sends words, and prints what comes back.
func call(ctx context.Context, address string, words []string, config *efa.Config) error {
	c, err := efa.Dial(ctx, address, config)
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, longest)
	for _, word := range words {
		if err := c.WriteMessage(ctx, []byte(word)); err != nil {
			return err
		}
		n, err := c.ReadMessage(ctx, buf)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", buf[:n])
	}
	return c.Close()
}
