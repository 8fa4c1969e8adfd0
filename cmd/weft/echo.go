package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/weft-go/weft/cmd/weft/internal/transfer"
	"github.com/weft-go/weft/efa"
)

// maxPingers bounds the memory that pings can cost; more of them wait.
const maxPingers = 64

// serve answers until a signal comes.
func (c *pingCommand) serve(t *terminal) error {
	config, err := c.config(true, maxPing, t.logger)
	if err != nil {
		return err
	}
	exposed, err := c.expose()
	if err != nil {
		return err
	}
	defer exposed.close()
	t.warn()
	ctx, done := interruptible()
	defer done()
	var pingers sync.WaitGroup
	defer pingers.Wait() // once the listener is closed
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
	return acceptEach(ctx, l, maxPingers, &pingers, func(conn *efa.Conn) {
		if err := c.answer(ctx, conn); err != nil && ctx.Err() == nil {
			fmt.Fprintf(t.stderr, "weft: from %s: %v\n", conn.RemoteAddr(), err)
		}
	})
}

// answer sends back what one peer sends, until the peer closes.
func (c *pingCommand) answer(ctx context.Context, conn *efa.Conn) error {
	buffer := make([]byte, 64<<10)
	for greeted := false; ; greeted = true {
		n, err := c.await(ctx, conn, &buffer)
		if errors.Is(err, io.EOF) {
			return conn.Close()
		} else if err != nil {
			_ = conn.CloseNow()
			return lost(ctx, err)
		}
		message := buffer[:n]
		var refusal error
		if !greeted {
			if refusal = checkPing(message); refusal != nil {
				message = transfer.Refusal(refusal)
			}
		}
		limited, cancel := context.WithTimeout(ctx, c.Timeout)
		err = conn.WriteMessage(limited, message)
		cancel()
		switch {
		case err != nil:
			_ = conn.CloseNow()
			return lost(ctx, err)
		case refusal != nil:
			_ = conn.Close()
			return refusal
		}
	}
}

// await takes the next message, for which it makes room within limits.
func (c *pingCommand) await(ctx context.Context, conn *efa.Conn, buffer *[]byte) (int, error) {
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	size, err := conn.MessageSize(limited)
	if err != nil {
		return 0, err
	}
	if size > maxPing {
		return 0, fmt.Errorf("%w: a ping of %d bytes, at most %d are answered", transfer.ErrProtocol, size, maxPing)
	}
	if size > len(*buffer) {
		*buffer = make([]byte, size)
	}
	return conn.ReadMessage(limited, *buffer)
}

func checkPing(message []byte) error {
	protocol, version, err := transfer.ReadGreeting(message)
	switch {
	case err != nil:
		return err
	case protocol != pingProtocol:
		return fmt.Errorf("%w: the peer speaks %q, this is weft ping --serve; start weft recv for files", transfer.ErrProtocol, protocol)
	case version != pingVersion:
		return fmt.Errorf("%w: the peer speaks version %d of %s, this is version %d", transfer.ErrProtocol, version, pingProtocol, pingVersion)
	}
	return nil
}
