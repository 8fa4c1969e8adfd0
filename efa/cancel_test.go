package efa

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCancelledRead(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		buf := make([]byte, 10000)
		for i := range 10 {
			short, cancel := context.WithCancel(ctx)
			ended := make(chan error)
			go func() {
				_, err := accepted.ReadMessage(short, buf)
				ended <- err
			}()
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.NoError(t, dialed.WriteMessageAsync(message(1, i, 500*i), func(error) {}))
			n, err := accepted.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(1, i, 500*i), buf[:n]))
		}
		closeBoth(t, dialed, accepted)
	})
}

// A write that is cancelled while it waits for credit was not sent, and the
// messages after it are in step.
func TestCancelledWrite(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 2})
		ctx := deadline(t)
		require.NoError(t, dialed.WriteMessage(ctx, message(1, 0, 10)))
		require.NoError(t, dialed.WriteMessage(ctx, message(1, 1, 10)))
		short, cancel := context.WithCancel(ctx)
		ended := make(chan error)
		go func() { ended <- dialed.WriteMessage(short, message(1, 99, 10)) }()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		written := make(chan error)
		go func() { written <- dialed.WriteMessage(ctx, message(1, 2, 10)) }()
		buf := make([]byte, 10)
		for i := range 3 {
			n, err := accepted.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.Equal(t, message(1, i, 10), buf[:n])
		}
		require.NoError(t, <-written)
		closeBoth(t, dialed, accepted)
	})
}

// A context that has ended before says why, to whichever call.
func TestEndedContext(t *testing.T) {
	b := newBed(t, settings[0])
	dialed, accepted := b.connect(t, Config{})
	why := errors.New("the job is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	buffer, err := dialed.Buffer(10)
	require.NoError(t, err)
	defer buffer.Release()
	for name, call := range map[string]func() error{
		"ReadMessage":  func() error { _, err := dialed.ReadMessage(ctx, nil); return err },
		"MessageSize":  func() error { _, err := dialed.MessageSize(ctx); return err },
		"WriteMessage": func() error { return dialed.WriteMessage(ctx, nil) },
		"WriteBuffer":  func() error { return dialed.WriteBuffer(ctx, buffer) },
		"Flush":        func() error { return dialed.Flush(ctx, FlushLocal) },
		"Attach": func() error {
			_, err := dialed.reactor.Attach(ctx, AttachConfig{Address: accepted.reactor.LocalAddress()})
			return err
		},
	} {
		require.ErrorIs(t, call(), why, name)
	}
	closeBoth(t, dialed, accepted)
}
