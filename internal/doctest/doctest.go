// Package doctest runs the fragments of Go in the documents: those blocks that are no
// programs of their own. docs_programs_test.go makes functions of them, and a program that
// calls Main with all of them.
package doctest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
)

// Fragment is one, and where it is.
type Fragment struct {
	Where string
	Run   func(ctx context.Context) error
}

// patience is far beyond what any of them needs on a slow machine.
const patience = 2 * time.Minute

// Main runs them, and ends the process with a failure if one fails.
func Main(fragments ...Fragment) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	failed := false
	for _, f := range fragments {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if err := f.Run(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", f.Where, err)
			failed = true
		}
		cancel()
	}
	fmt.Printf("%d fragments\n", len(fragments))
	if failed {
		os.Exit(1)
	}
}

// Plain is for a fragment that needs nothing.
func Plain(f func(ctx context.Context) error) func(context.Context) error { return f }

// Conn is for one that is given a connection, whose other side sends back what comes.
func Conn(f func(ctx context.Context, c *efa.Conn) error) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		l, err := efa.Listen(ctx, "127.0.0.1:0", engine())
		if err != nil {
			return err
		}
		defer l.Close()
		echoed := make(chan error, 1)
		go func() { echoed <- echo(ctx, l) }()
		c, err := efa.Dial(ctx, l.Addr().String(), engine())
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, c), c.Close(), <-echoed)
	}
}

// Stream is Conn for a stream.
func Stream(f func(ctx context.Context, s *efa.Stream) error) func(context.Context) error {
	return Conn(func(ctx context.Context, c *efa.Conn) error { return f(ctx, c.Stream()) })
}

func engine() *efa.Config { return &efa.Config{Providers: []string{"tcp"}, Require: true} }

func echo(ctx context.Context, l *efa.Listener) error {
	c, err := l.AcceptConn(ctx)
	if err != nil {
		return err
	}
	for {
		n, err := c.MessageSize(ctx)
		if errors.Is(err, io.EOF) {
			return c.Close()
		}
		if err != nil {
			return errors.Join(err, c.CloseNow())
		}
		buf := make([]byte, n)
		if _, err := c.ReadMessage(ctx, buf); err != nil {
			return err
		}
		if err := c.WriteMessage(ctx, buf); err != nil && !errors.Is(err, efa.ErrPeerClosed) && !errors.Is(err, net.ErrClosed) {
			return err
		}
	}
}

// Launched is for one that joins a job by its environment, which is that of the only rank.
func Launched(f func(ctx context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		folder, err := os.MkdirTemp("", "doctest")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		for _, setting := range (bootstrap.Member{Size: 1, LocalSize: 1}).Environment("file://"+folder, nil) {
			name, value, _ := strings.Cut(setting, "=")
			if err := os.Setenv(name, value); err != nil {
				return err
			}
			defer os.Unsetenv(name)
		}
		return f(ctx)
	}
}

// Job is for one that is a rank of a job: two of them at the same time, in one process.
func Job(f func(ctx context.Context, job *bootstrap.Job) error) func(context.Context) error {
	return func(ctx context.Context) error {
		folder, err := os.MkdirTemp("", "doctest")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		var errs [2]error
		var ranks sync.WaitGroup
		for rank := range errs {
			ranks.Go(func() {
				job, err := bootstrap.Join(ctx, bootstrap.Options{Rank: rank, Size: len(errs), Address: "file://" + folder})
				if err == nil {
					err = errors.Join(f(ctx, job), job.Close())
				}
				errs[rank] = err
			})
		}
		ranks.Wait()
		return errors.Join(errs[:]...)
	}
}

// World is for one that is a rank with the others of its job in a world.
func World(f func(ctx context.Context, world *comm.Comm) error) func(context.Context) error {
	return Job(func(ctx context.Context, job *bootstrap.Job) error {
		world, err := comm.Open(ctx, comm.Config{Rank: job.Rank, Size: job.Size, Exchange: job.Exchange, Engine: engine()})
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, world), world.Close())
	})
}
