package fabric_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Many may close one queue, beside one that waits in it or looks into it for long.
func TestQueueIsClosedByMany(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := strewInfo(t, provider)
		_, d := partsOf(t, info)
		for round := range 6 {
			q := queueOf(t, d, 16)
			looks := func(c []fabric.Completion) (int, error) { return q.Read(c, 1<<20) }
			if _, err := q.ReadWait(make([]fabric.Completion, 1), 1); err == nil && round%2 == 0 {
				looks = func(c []fabric.Completion) (int, error) { return q.ReadWait(c, 1000) }
			}
			var reader, closers sync.WaitGroup
			reader.Go(func() {
				c := make([]fabric.Completion, 1)
				for {
					if _, err := looks(c); err != nil {
						assert.ErrorIs(t, err, net.ErrClosed)
						return
					}
				}
			})
			require.Eventually(t, func() bool { return fabric.UsersOfQueue(q) > 0 }, 30*time.Second, time.Millisecond)
			for range 4 {
				closers.Go(func() { assert.NoError(t, q.Close()) })
			}
			reader.Wait()
			closers.Wait()
		}
	})
}

// Endpoints that have two queues the other way round are closed at the same time.
func TestEndpointsOfCrossedQueuesAreClosed(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := strewInfo(t, provider)
		f, d := partsOf(t, info)
		for range 10 {
			a, b := queueOf(t, d, 16), queueOf(t, d, 16)
			var readers sync.WaitGroup
			var oneAtATime sync.Mutex // for whoever reads a queue looks at the other one of an endpoint
			for _, q := range []*fabric.CompletionQueue{a, b} {
				// So that a Close has to wait for each of them.
				readers.Go(func() {
					c := make([]fabric.Completion, 1)
					for {
						oneAtATime.Lock()
						_, err := q.Read(c, 1<<12)
						oneAtATime.Unlock()
						if err != nil {
							assert.ErrorIs(t, err, net.ErrClosed)
							return
						}
					}
				})
			}
			var endpoints []*fabric.Endpoint
			for _, queues := range [2]fabric.Bindings{{Send: a, Receive: b}, {Send: b, Receive: a}} {
				queues.Vector, queues.Events = vectorOf(t, d), eventsOf(t, f)
				e := endpointOf(t, d)
				require.NoError(t, e.EnableWith(queues))
				endpoints = append(endpoints, e)
			}
			var closers sync.WaitGroup
			for _, e := range endpoints {
				closers.Go(func() { assert.NoError(t, e.Close()) })
			}
			closers.Wait()
			require.NoError(t, a.Close())
			require.NoError(t, b.Close())
			readers.Wait()
		}
	})
}
