//go:build !race && !asan

package efa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
)

// A message crosses without allocation on either side, whichever way it goes.
// (Under the race detector sync.Pool forgets on purpose, and asan allocates.)
func TestMessagesDoNotAllocate(t *testing.T) {
	for _, s := range settings {
		if s.Provider == "" {
			// The device in memory is free to allocate.
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			dialed, accepted := newBed(t, s).connect(t, Config{})
			ctx := context.Background()
			for _, size := range []int{8, 2000, 20000} {
				if skipsRegistered(t, dialed, size) {
					continue
				}
				out, in := make([]byte, size), make([]byte, size)
				// A long message is not out of the writer's hands before it is
				// read.
				begin, written := make(chan struct{}), make(chan error)
				go func() {
					for range begin {
						written <- dialed.WriteMessage(ctx, out)
					}
				}()
				var failures []error
				round := func() {
					begin <- struct{}{}
					_, err := accepted.ReadMessage(ctx, in)
					if failed := <-written; err != nil || failed != nil {
						failures = append(failures, err, failed)
					}
				}
				for range 200 {
					round()
				}
				allocations := testing.AllocsPerRun(500, round)
				close(begin)
				require.Empty(t, failures)
				require.Zero(t, allocations, "%d bytes", size)
			}
			closeBoth(t, dialed, accepted)
		})
	}
}

// Nor do the bytes of a stream, with a deadline or without.
func TestStreamsDoNotAllocate(t *testing.T) {
	for _, s := range settings {
		if s.Provider == "" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			dialed, accepted := newBed(t, s).streams(t, Config{})
			for _, limit := range []time.Time{{}, time.Now().Add(time.Hour)} {
				require.NoError(t, dialed.SetDeadline(limit))
				require.NoError(t, accepted.SetDeadline(limit))
				for _, size := range []int{8, 20000, 200_000} {
					if skipsRegistered(t, dialed.conn, size) {
						continue
					}
					out, in := make([]byte, size), make([]byte, size)
					begin, written := make(chan struct{}), make(chan error)
					go func() {
						for range begin {
							_, err := dialed.Write(out)
							written <- err
						}
					}()
					var failures []error
					round := func() {
						begin <- struct{}{}
						_, err := io.ReadFull(accepted, in)
						if failed := <-written; err != nil || failed != nil {
							failures = append(failures, err, failed)
						}
					}
					for range 100 {
						round()
					}
					allocations := testing.AllocsPerRun(100, round)
					close(begin)
					require.Empty(t, failures)
					require.Zero(t, allocations, "%d bytes, deadline %v", size, limit)
				}
			}
			closeStreams(t, dialed, accepted)
		})
	}
}

// Nor do those that go over several devices.
func TestRailsDoNotAllocate(t *testing.T) {
	for _, s := range settings {
		if s.Provider == "" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			dialed, accepted := newBed(t, s).connect(t, Config{Rails: 3})
			size := 2 * min(dialed.piece, railPiece)
			if skipsRegistered(t, dialed, size) {
				return
			}
			out, in := make([]byte, size), make([]byte, size)
			begin, written := make(chan struct{}), make(chan error)
			go func() {
				for range begin {
					written <- dialed.WriteMessage(context.Background(), out)
				}
			}()
			var failures []error
			round := func() {
				begin <- struct{}{}
				_, err := accepted.ReadMessage(context.Background(), in)
				if failed := <-written; err != nil || failed != nil {
					failures = append(failures, err, failed)
				}
			}
			for range 50 {
				round()
			}
			allocations := testing.AllocsPerRun(50, round)
			close(begin)
			require.Empty(t, failures)
			require.Zero(t, allocations)
			require.Positive(t, dialed.reactor.Stats().Rails[2].SentBytes)
			closeBoth(t, dialed, accepted)
		})
	}
}

// skipsRegistered counts a size as skipped for which the writer's memory is
// registered each time, and says so.
func skipsRegistered(t *testing.T, c *Conn, size int) bool {
	long := c.reactor.attributes.NeedsRegistration && size > c.reactor.copyLimit()
	if long {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			testenv.Need(t, fmt.Sprintf("messages of %d bytes without allocation", size), errors.New("the device needs the memory registered, which allocates"))
		})
	}
	return long
}
