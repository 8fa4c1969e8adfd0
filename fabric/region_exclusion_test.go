package fabric_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Regions are closed, however busy the endpoints, queues and counters of their domain are, and others that
// are opened and closed there.
func TestRegionIsClosedInBusyDomain(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := undertakingInfoFor(t, provider, false)
		f, d := partsOf(t, info)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var busy, closing sync.WaitGroup
		var turners []*station
		for range 2 {
			s := openStation(t, f, d, info)
			busy.Go(func() {
				var err error
				for buf := make([]fabric.Completion, 8); err == nil; {
					_, err = s.e.Turn(nil, buf, 100)
				}
				assert.ErrorIs(t, err, net.ErrClosed)
			})
			turners = append(turners, s)
		}
		if c, err := d.OpenCounter(); err == nil {
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			busy.Go(func() {
				for ctx.Err() == nil {
					if err := c.Wait(ctx, 1); err != nil && !errors.Is(err, fabric.ErrNotSupported) {
						assert.ErrorIs(t, err, context.Canceled)
					}
				}
			})
		}
		for range 2 {
			events, v, q := eventsOf(t, f), vectorOf(t, d), queueOf(t, d, 64)
			busy.Go(func() {
				for ctx.Err() == nil {
					e, err := d.OpenEndpoint()
					if !assert.NoError(t, err) {
						return
					}
					if err := e.Enable(v, q, events); err != nil {
						assert.Equal(t, "efa", provider, "%v", err) // whose vectors are for one
					}
					assert.NoError(t, e.Close())
				}
			})
		}
		for range 3 {
			closing.Go(func() {
				for range 30 {
					r, err := d.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessRemoteRead}, make([]byte, 4096))
					if !assert.NoError(t, err) {
						return
					}
					assert.NoError(t, r.Close())
				}
			})
		}
		closed := make(chan struct{})
		go func() {
			closing.Wait()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(2 * time.Minute):
			assert.Fail(t, "regions are not closed while others are busy")
		}
		cancel()
		closing.Wait()
		for _, s := range turners {
			assert.NoError(t, s.e.Close())
		}
		busy.Wait()
	})
}
