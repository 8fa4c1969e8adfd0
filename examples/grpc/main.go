// Command grpc is gRPC over weft: a server and a client of a small service.
//
//	go run . -serve 127.0.0.1:7470          # in one terminal,
//	go run . 127.0.0.1:7470 hello fabric    # and in another
//
// What it takes is in serve and connect: a weft listener is a net.Listener, and
// a weft reactor dials like a net.Dialer.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weft-go/weft/efa"
)

// newServer makes a gRPC server, which is the same over any net.Listener.
func newServer() *grpc.Server {
	s := grpc.NewServer()
	s.RegisterService(&description, words{})
	return s
}

// connect makes a gRPC client that dials through a reactor.
func connect(r *efa.Reactor, address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return r.DialContext(ctx, "weft", address)
		}),
		// Who may connect, and whether anybody can listen, is weft's matter or
		// that of TLS; see efa.Config.
		grpc.WithTransportCredentials(insecure.NewCredentials()))
}

func serve(ctx context.Context, address string) error {
	l, err := efa.Listen(ctx, address, nil)
	if err != nil {
		return err
	}
	fmt.Printf("serving %s over %s\n", l.Addr(), l.Provider())
	s := newServer()
	context.AfterFunc(ctx, s.GracefulStop)
	return s.Serve(l)
}

func call(ctx context.Context, address, text string) error {
	r, err := efa.Open(nil)
	if err != nil {
		return err
	}
	defer r.Close()
	conn, err := connect(r, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()

	c := client{conn}
	upper, err := c.Upper(ctx, text)
	if err != nil {
		return err
	}
	answers, err := c.Split(ctx, upper)
	if err != nil {
		return err
	}
	for {
		word, err := answers.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println(word.GetValue())
	}
}

func main() {
	listen := flag.String("serve", "", "serve at this `address`")
	flag.Parse()
	if err := run(*listen, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

func run(listen string, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch {
	case listen != "":
		return serve(ctx, listen)
	case len(args) >= 2:
		return call(ctx, args[0], strings.Join(args[1:], " "))
	default:
		return errors.New("usage: grpc -serve ADDRESS, or grpc ADDRESS TEXT")
	}
}
