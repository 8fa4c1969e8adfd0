//go:build !asan

package fabric_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// apart is an endpoint whose queue is read by itself.
type apart struct {
	e *fabric.Endpoint
	q *fabric.CompletionQueue
}

func (s apart) Turn(posts []fabric.Op, completions []fabric.Completion, spins int) (int, error) {
	if len(posts) > 0 {
		if _, err := s.e.Turn(posts, nil, 0); err != nil {
			return 0, err
		}
	}
	return s.q.Read(completions, spins)
}

func (s apart) TurnWait(_ []fabric.Op, completions []fabric.Completion, waitMS int) (int, error) {
	return s.q.ReadWait(completions, waitMS)
}

func TestCompletionQueueDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		e := between(a, b,
			fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Buf: make([]byte, 64)},
			fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: make([]byte, 64)})
		e.sides = [2]turner{apart{a.e, a.q}, apart{b.e, b.q}}
		e.requireFree(t, "messages")

		buf := make([]fabric.Completion, 8)
		var failed error
		note := func(err error) { failed = errors.Join(failed, err) }
		requireFree(t, func() { _, err := b.q.Read(buf, 0); note(err) }, "empty read")
		requireFree(t, func() { _, err := b.q.Read(buf, 100); note(err) }, "read that spins")
		requireFree(t, func() { _, err := b.e.Turn(nil, buf, 0); note(err) }, "empty turn")
		requireFree(t, func() { _, err := b.e.Turn(nil, buf, 100); note(err) }, "turn that spins")
		requireFree(t, func() { _ = b.q.Size() + b.q.InFlight() + b.q.WaitDescriptor() + int(b.q.Strays()) }, "properties")
		if b.q.WaitDescriptor() >= 0 {
			requireFree(t, func() { _, err := b.q.TryWait(); note(err) }, "try to wait")
			requireFree(t, func() { _, err := b.q.ReadWait(buf, 1); note(err) }, "read that blocks")
			requireFree(t, func() { _, err := b.e.TurnWait(nil, buf, 1); note(err) }, "turn that blocks")
			requireFree(t, func() { note(b.q.Signal()) }, "signal")
		}
		require.NoError(t, failed)
	})
}

// To cancel is free; the completion that says so is an error, which is not.
func TestCancelDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		var tokens []fabric.Token
		for range 64 {
			op := b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 8)})
			tokens = append(tokens, op.Token)
		}
		var failed error
		next := 0
		cancel := func() {
			failed = errors.Join(failed, b.e.Cancel(tokens[next]))
			next++
		}
		requireFree(t, cancel, "cancel")
		require.NoError(t, failed)
		for range next {
			require.ErrorIs(t, b.await(t, a).Err, fabric.ErrCanceled)
		}
		requireFree(t, func() { failed = errors.Join(failed, b.e.Cancel(tokens[0])) }, "cancel of what is complete")
		require.NoError(t, failed)
	})
}

func TestCounterDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		c := openCounter(t, openDomain(t, rmaHints(provider)).domain)
		var failed error
		note := func(err error) { failed = errors.Join(failed, err) }
		requireFree(t, func() { _, err := c.Read(); note(err) }, "read")
		requireFree(t, func() { _, err := c.Errors(); note(err) }, "errors")
		requireFree(t, func() { note(c.Add(1)) }, "add")
		requireFree(t, func() { note(c.Set(0)) }, "set")
		requireFree(t, func() { note(c.AddErrors(1)) }, "add errors")
		requireFree(t, func() { note(c.SetErrors(0)) }, "set errors")
		ctx, background := within(t, time.Minute), context.Background()
		_ = ctx.Done() // which the context makes when it is first asked for
		requireFree(t, func() { note(c.Wait(ctx, 0)) }, "wait for what is there")

		// Waits that wait.
		more := make(chan struct{})
		ended := make(chan error)
		go func() {
			for range more {
				if err := c.Add(1); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
		n := uint64(0)
		for _, ctx := range []context.Context{ctx, background} {
			requireFree(t, func() {
				more <- struct{}{}
				n++
				note(c.Wait(ctx, n))
			}, "wait")
		}
		close(more)
		require.NoError(t, <-ended)
		over, cancel := context.WithCancel(background)
		cancel()
		requireFree(t, func() {
			if err := c.Wait(over, n+1); !errors.Is(err, context.Canceled) {
				note(errors.New("a wait without end"))
			}
		}, "wait that is over")
		require.NoError(t, failed)
	})
}

func TestEmptyEventQueueDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		q := openDomain(t, rmaHints(provider)).events
		var failed error
		requireFree(t, func() { _, _, err := q.Read(); failed = errors.Join(failed, err) }, "read")
		if q.WaitDescriptor() >= 0 {
			requireFree(t, func() { _, err := q.TryWait(); failed = errors.Join(failed, err) }, "try to wait")
		}
		require.NoError(t, failed)
	})
}
