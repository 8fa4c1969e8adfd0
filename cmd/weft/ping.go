package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weft-go/weft/cmd/weft/internal/transfer"
	"github.com/weft-go/weft/efa"
)

const (
	pingProtocol = "weft-ping"
	pingVersion  = 1
	maxPing      = 16 << 20 // bytes of one message
)

type pingCommand struct {
	Address string `arg:"" optional:"" name:"host:port" help:"Where a weft ping --serve listens."`
	Serve   bool   `help:"Answer pings until a signal comes."`
	Listen  string `default:"127.0.0.1:7465" placeholder:"HOST:PORT" help:"With --serve, where to listen (${default}). Port 0 takes a free one."`
	Count   int    `default:"10000" help:"How many round trips to measure."`
	Size    int    `default:"8" help:"Bytes of each message."`
	metricsFlags
	connectFlags
}

// Run measures, or serves.
func (c *pingCommand) Run(t *terminal) error {
	if err := c.check(c.Serve); err != nil {
		return err
	}
	why, ignored := "is for weft ping --serve", []string{"listen", "metrics"}
	if c.Serve {
		why, ignored = "is for weft ping HOST:PORT: who pings says it", []string{"count", "size"}
	}
	if err := t.refuse(why, ignored...); err != nil {
		return err
	}
	switch {
	case c.Serve && c.Address != "":
		return &usageError{"--serve takes no address; the place to listen at is --listen"}
	case c.Serve:
		if err := checkAddress(c.Listen, 0); err != nil {
			return &usageError{fmt.Sprintf("--listen is %v", err)}
		}
		return c.serve(t)
	case c.Address == "":
		return &usageError{"no address; usage: weft ping HOST:PORT, or weft ping --serve"}
	case c.Count < 1:
		return &usageError{fmt.Sprintf("--count is %d, at least 1 is needed", c.Count)}
	case c.Size < 0 || c.Size > maxPing:
		return &usageError{fmt.Sprintf("--size is %d, it can be 0 to %d", c.Size, maxPing)}
	}
	if err := checkAddress(c.Address, 1); err != nil {
		return &usageError{fmt.Sprintf("the argument is %v", err)}
	}
	config, err := c.config(false, maxPing, t.logger)
	if err != nil {
		return err
	}
	ctx, done := interruptible()
	defer done()
	conn, err := dial(ctx, c.Address, "weft ping --serve", config)
	if err != nil {
		return err
	}
	histogram := hdrhistogram.New(1, time.Minute.Nanoseconds(), 3)
	if err := c.measure(ctx, conn, histogram); err != nil {
		_ = conn.CloseNow()
		if histogram.TotalCount() > 0 {
			_ = c.print(t, conn, histogram)
		}
		return err
	}
	if err := conn.Close(); err != nil {
		t.logger.Debug("weft: closing", "error", err)
	}
	return c.print(t, conn, histogram)
}

// measure takes down the round-trip times in nanoseconds.
func (c *pingCommand) measure(ctx context.Context, conn *efa.Conn, histogram *hdrhistogram.Histogram) error {
	message := transfer.Greeting(pingProtocol, pingVersion)
	back := make([]byte, max(c.Size, 64<<10))
	n, err := c.trip(ctx, conn, message, back)
	if err != nil {
		return err
	}
	if !bytes.Equal(back[:n], message) {
		return transfer.ReadRefusal(back[:n])
	}
	// Sockets, caches and the provider's own handshake warm up unmeasured.
	warm := min(c.Count/10+1, 1000)
	message = make([]byte, c.Size)
	// From a negative number on: their sum may be more than an int holds.
	for i := -warm; i < c.Count; i++ {
		if c.Size >= 8 {
			binary.LittleEndian.PutUint64(message, uint64(i))
		}
		start := time.Now()
		n, err := c.trip(ctx, conn, message, back)
		took := time.Since(start)
		if err != nil {
			return err
		}
		if !bytes.Equal(back[:n], message) {
			return fmt.Errorf("%w: round trip %d came back with %d other bytes", transfer.ErrMismatch, i+warm, n)
		}
		if i >= 0 {
			_ = histogram.RecordValue(min(took.Nanoseconds(), time.Minute.Nanoseconds()))
		}
	}
	return nil
}

// trip sends a message and takes the answer.
func (c *pingCommand) trip(ctx context.Context, conn *efa.Conn, message, back []byte) (int, error) {
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err := conn.WriteMessage(limited, message); err != nil {
		return 0, lost(ctx, err)
	}
	n, err := conn.ReadMessage(limited, back)
	if err != nil {
		return 0, lost(ctx, err)
	}
	return n, nil
}

func lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, transfer.ErrProtocol):
		return err
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: the peer closed it", transfer.ErrLost)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: no answer within the time limit", transfer.ErrLost)
	}
	return fmt.Errorf("%w: %w", transfer.ErrLost, err)
}

// quantiles are what is printed between the extremes.
var quantiles = []struct {
	name string
	of   float64
}{{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}}

// print tells of the round trips that were measured, which may be fewer than
// were asked for.
func (c *pingCommand) print(t *terminal, conn *efa.Conn, h *hdrhistogram.Histogram) error {
	if c.JSON {
		result := map[string]any{
			"peer": c.Address, "provider": conn.Provider(), "messages": messagesOf(conn), "count": h.TotalCount(), "size": c.Size,
			"min_ns": h.Min(), "max_ns": h.Max(),
		}
		for _, q := range quantiles {
			result[q.name+"_ns"] = h.ValueAtQuantile(q.of)
		}
		return t.printJSON(result)
	}
	text := fmt.Sprintf("round trips %d of %d bytes over %s, in microseconds: min %.1f", h.TotalCount(), c.Size, conn.Provider(), micros(h.Min()))
	for _, q := range quantiles {
		text += fmt.Sprintf(", %s %.1f", q.name, micros(h.ValueAtQuantile(q.of)))
	}
	_, err := fmt.Fprintf(t.stdout, "%s, max %.1f\n", text, micros(h.Max()))
	return err
}

func micros(nanoseconds int64) float64 { return float64(nanoseconds) / 1e3 }
