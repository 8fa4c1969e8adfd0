package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/cmd/weft/internal/transfer"
	"github.com/weft-go/weft/efa"
)

// pingWith runs a ping of 100 round trips against a server that answers so many
// of them, and does then what end does. It returns what the command printed.
func pingWith(t *testing.T, answered int, end func(conn *efa.Conn, message []byte)) (string, error) {
	t.Helper()
	needProvider(t, "sockets")
	quiet := slog.New(slog.DiscardHandler)
	l, err := efa.Listen(t.Context(), "127.0.0.1:0", &efa.Config{Providers: []string{"sockets"}, Logger: quiet})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- servePing(l, answered, end) }()
	var stdout bytes.Buffer
	c := &pingCommand{Address: l.Addr().String(), Count: 100, Size: 8}
	c.Provider, c.Timeout = []string{"sockets"}, generous
	err = c.Run(&terminal{stdout: &stdout, stderr: io.Discard, logger: quiet})
	require.NoError(t, <-served)
	require.NoError(t, l.Close())
	return stdout.String(), err
}

func servePing(l *efa.Listener, answered int, end func(conn *efa.Conn, message []byte)) error {
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	conn, err := l.AcceptConn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	const before = 1 + 11 // the greeting and what warms up
	message := make([]byte, 64<<10)
	for range before + answered {
		n, err := conn.ReadMessage(ctx, message)
		if err != nil {
			return err
		}
		if err := conn.WriteMessage(ctx, message[:n]); err != nil {
			return err
		}
	}
	n, err := conn.ReadMessage(ctx, message)
	if err != nil {
		return err
	}
	end(conn, message[:n])
	// Whatever the client does, it closes, and reading ends.
	if _, err := conn.ReadMessage(ctx, message); ctx.Err() != nil {
		return err
	}
	return nil
}

// What was measured before the end is told, whatever the end was.
func TestPingThatIsCutShort(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(conn *efa.Conn, message []byte)
		code int
		text string
	}{
		"interrupted": {func(*efa.Conn, []byte) { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) }, exitInterrupted, "interrupted"},
		"closed":      {func(conn *efa.Conn, _ []byte) { _ = conn.Close() }, exitPeer, "connection lost: the peer closed it"},
		"lost":        {func(conn *efa.Conn, _ []byte) { _ = conn.CloseNow() }, exitPeer, "connection lost: "},
		"other bytes": {func(conn *efa.Conn, message []byte) {
			message[0]++
			_ = conn.WriteMessage(context.Background(), message)
		}, exitMismatch, "verification failed: round trip 18 came back with 8 other bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			printed, err := pingWith(t, 7, c.end)
			require.Equal(t, c.code, exitCode(err), "%v", err)
			require.ErrorContains(t, err, c.text)
			require.Regexp(t, `^round trips 7 of 8 bytes over sockets, in microseconds: min [0-9.]+,.*\n$`, printed)
		})
	}
	t.Run("before the first", func(t *testing.T) {
		printed, err := pingWith(t, 0, func(conn *efa.Conn, _ []byte) { _ = conn.CloseNow() })
		require.ErrorIs(t, err, transfer.ErrLost)
		require.Empty(t, printed)
	})
}

func TestLost(t *testing.T) {
	ended, end := context.WithCancelCause(t.Context())
	end(errInterrupted)
	protocol := fmt.Errorf("%w: a ping too long", transfer.ErrProtocol)
	for _, c := range []struct {
		ctx  context.Context
		err  error
		kind error
		text string
	}{
		{ended, io.EOF, errInterrupted, "interrupted"},
		{t.Context(), protocol, transfer.ErrProtocol, protocol.Error()},
		{t.Context(), io.EOF, transfer.ErrLost, "connection lost: the peer closed it"},
		{t.Context(), &efa.InFlightError{Err: context.DeadlineExceeded}, transfer.ErrLost, "connection lost: no answer within the time limit"},
		{t.Context(), errors.New("a reason"), transfer.ErrLost, "connection lost: a reason"},
	} {
		err := lost(c.ctx, c.err)
		require.ErrorIs(t, err, c.kind)
		require.EqualError(t, err, c.text)
	}
}
