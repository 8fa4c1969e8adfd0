package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"

	"github.com/weft-go/weft/cmd/weft/internal/transfer"
	"github.com/weft-go/weft/efa"
)

// maxSenders bounds the memory and the open folders that senders can cost.
// More of them wait for their turn.
const maxSenders = 16

type recvCommand struct {
	Listen string `default:"127.0.0.1:7465" placeholder:"HOST:PORT" help:"Where to listen (${default}). Port 0 takes a free one."`
	Dir    string `required:"" placeholder:"DIR" help:"Where files go; made if it is not there. Nothing outside is written."`
	Once   bool   `help:"End after one sender, with its result as exit code."`
	metricsFlags
	connectFlags
}

// Run receives.
func (c *recvCommand) Run(t *terminal) error {
	if err := checkAddress(c.Listen, 0); err != nil {
		return &usageError{fmt.Sprintf("--listen is %v", err)}
	}
	if err := c.check(true); err != nil {
		return err
	}
	config, err := c.config(true, transfer.MaxMessage, t.logger)
	if err != nil {
		return err
	}
	exposed, err := c.expose()
	if err != nil {
		return err
	}
	defer exposed.close()
	root, err := openDir(c.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if c.Once {
		return c.once(t, root, config, exposed)
	}
	return c.serve(t, root, config, exposed)
}

// openDir makes the folder if need be, and makes sure that it can be written:
// better now than after the first sender has come.
func openDir(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, dirError(dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, dirError(dir, err)
	}
	if err := transfer.CheckWritable(root); err != nil {
		_ = root.Close()
		return nil, dirError(dir, err)
	}
	return root, nil
}

func dirError(dir string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("cannot write into --dir %q: %w; choose another folder", dir, err)
}

// once serves one sender.
func (c *recvCommand) once(t *terminal, root *os.Root, config *efa.Config, exposed *exposition) error {
	ctx, done := interruptible()
	defer done()
	l, err := listen(ctx, c.Listen, config)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := t.listening(c.JSON, l.Addr().String(), l.Provider()); err != nil {
		return err
	}
	if err := exposed.serve(t, c.JSON, l); err != nil {
		return err
	}
	conn, err := l.AcceptConn(ctx)
	if err != nil {
		return err
	}
	bar := newBar(-1)
	summary, err := receive(ctx, conn, root, transfer.Options{Timeout: c.Timeout, Progress: bar.add})
	bar.finish()
	if err != nil {
		c.failed(t, conn, summary, err)
		return err
	}
	return t.transferred(c.JSON, "received", conn.RemoteAddr().String(), conn, summary)
}

// receive takes one sender's files and closes the connection.
func receive(ctx context.Context, conn *efa.Conn, root *os.Root, options transfer.Options) (transfer.Summary, error) {
	summary, err := transfer.Receive(ctx, conn, root, options)
	if errors.Is(err, transfer.ErrLost) {
		_ = conn.CloseNow()
		return summary, err
	}
	// Gracefully also after a failure: the sender is to learn of it.
	if closeErr := conn.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("everything is received and verified, but %w before the sender knew: %w", transfer.ErrLost, closeErr)
	}
	return summary, err
}

// serve serves senders until a signal comes; then it ends when those that are
// connected have finished. A second signal ends them, too, and it is an error
// if it cut one off.
func (c *recvCommand) serve(t *terminal, root *os.Root, config *efa.Config, exposed *exposition) (err error) {
	t.warn()
	accepting, stopAccepting := context.WithCancelCause(context.Background())
	defer stopAccepting(nil)
	receiving, stopReceiving := context.WithCancelCause(context.Background())
	defer stopReceiving(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, stopSignals()...)
	var connected atomic.Int32
	go func() {
		<-signals
		stopAccepting(errInterrupted)
		if n := connected.Load(); n > 0 && onTerminal() {
			fmt.Fprintf(t.stderr, "weft: waiting for %d to finish sending; interrupt again to cut off\n", n)
		}
		<-signals
		signal.Stop(signals)
		stopReceiving(errInterrupted)
	}()

	var senders sync.WaitGroup
	var cutOff atomic.Bool
	defer func() { // once the listener is closed
		senders.Wait()
		if err == nil && cutOff.Load() {
			err = errInterrupted
		}
	}()
	l, err := listen(accepting, c.Listen, config)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := t.listening(c.JSON, l.Addr().String(), l.Provider()); err != nil {
		return err
	}
	if err := exposed.serve(t, c.JSON, l); err != nil {
		return err
	}
	output := &sync.Mutex{}
	return acceptEach(accepting, l, maxSenders, &senders, func(conn *efa.Conn) {
		connected.Add(1)
		defer connected.Add(-1)
		summary, err := receive(receiving, conn, root, transfer.Options{Timeout: c.Timeout})
		if errors.Is(err, errInterrupted) {
			cutOff.Store(true)
		}
		output.Lock()
		defer output.Unlock()
		c.report(t, conn, summary, err)
	})
}

// report prints how it went with one of several senders.
func (c *recvCommand) report(t *terminal, conn *efa.Conn, summary transfer.Summary, err error) {
	peer := conn.RemoteAddr().String()
	if err == nil {
		_ = t.transferred(c.JSON, "received", peer, conn, summary)
		return
	}
	fmt.Fprintf(t.stderr, "weft: from %s: %v\n", peer, err)
	c.failed(t, conn, summary, err)
}

// failed prints the event of a transfer that did not succeed.
func (c *recvCommand) failed(t *terminal, conn *efa.Conn, summary transfer.Summary, err error) {
	if !c.JSON {
		return
	}
	failed := eventOf("failed", conn.RemoteAddr().String(), conn, summary)
	failed.Error = err.Error()
	_ = t.printJSON(failed)
}
