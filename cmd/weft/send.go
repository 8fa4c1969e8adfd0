package main

import (
	"fmt"
	"net"

	"github.com/weft-go/weft/cmd/weft/internal/transfer"
)

type sendCommand struct {
	Arguments []string `arg:"" optional:"" name:"file-host-port" help:"What to send, and at the end the address of the receiver. Links are followed here, but not within folders."`
	connectFlags
}

// Run sends.
func (c *sendCommand) Run(t *terminal) error {
	last := len(c.Arguments) - 1
	if last < 0 {
		return &usageError{"nothing to send; usage: weft send FILE... HOST:PORT"}
	}
	address := c.Arguments[last]
	if err := checkAddress(address, 1); err != nil {
		return &usageError{fmt.Sprintf("the last argument is %v; usage: weft send FILE... HOST:PORT", err)}
	}
	if last == 0 {
		return &usageError{"nothing to send; usage: weft send FILE... HOST:PORT"}
	}
	if err := c.check(false); err != nil {
		return err
	}
	sources, err := transfer.Sources(c.Arguments[:last])
	if err != nil {
		return err
	}
	config, err := c.config(false, transfer.MaxMessage, t.logger)
	if err != nil {
		return err
	}
	ctx, done := interruptible()
	defer done()
	conn, err := dial(ctx, address, "weft recv", config)
	if err != nil {
		return err
	}
	var total int64
	if onTerminal() {
		total = transfer.Measure(ctx, sources)
	}
	bar := newBar(total)
	summary, err := transfer.Send(ctx, conn, sources, transfer.Options{
		Timeout:  c.Timeout,
		Progress: bar.add,
		Skipped: func(path, reason string) {
			fmt.Fprintf(t.stderr, "weft: skipped %q: %s\n", path, reason)
		},
	})
	bar.finish()
	if err != nil {
		_ = conn.CloseNow()
		return err
	}
	// The receiver has verified everything: nothing is left to be lost.
	if err := conn.Close(); err != nil {
		t.logger.Debug("weft: closing", "error", err)
	}
	return t.transferred(c.JSON, "sent", address, conn, summary)
}

// checkAddress admits HOST:PORT, with a port from least on.
func checkAddress(address string, least int) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return fmt.Errorf("%q, not HOST:PORT", address)
	}
	if number, err := net.LookupPort("tcp", port); err != nil || number < least {
		return fmt.Errorf("%q, where %q is neither a port from %d to 65535 nor the name of one", address, port, least)
	}
	return nil
}
