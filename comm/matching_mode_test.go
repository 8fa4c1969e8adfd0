package comm

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/jobtest"
	"github.com/weft-go/weft/tagged"
)

// Ranks that do not agree are told so, each with the name of another.
func TestMixedMatching(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Name != "fake" && b.Provider != "tcp" {
			return
		}
		const size = 3
		m := jobtest.NewMeeting(size)
		errs := make([]error, size)
		var all sync.WaitGroup
		for rank := range size {
			c := Config{Rank: rank, Size: size, Exchange: m.Exchange(rank), Logger: quiet, Matching: b.matching}
			if rank == 1 {
				c.Matching = MatchByProvider - b.matching
			}
			c.Engine = b.engine(t)
			all.Go(func() {
				world, err := Open(deadline(t), c)
				if errs[rank] = err; err == nil {
					_ = world.Close()
				}
			})
		}
		all.Wait()
		for _, err := range errs {
			var wrong *ConfigError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, "Matching", wrong.Field)
		}
		require.ErrorContains(t, errs[0], "rank 1")
		require.ErrorContains(t, errs[1], "rank 0")
		require.ErrorContains(t, errs[2], "rank 1")
	})
}

// engine is the configuration of a rank's engine.
func (b *bed) engine(t *testing.T) *efa.Config {
	c := &efa.Config{Logger: quiet}
	if b.Network != nil {
		c.Device = b.Open(t)
	} else {
		c.Providers, c.Require = []string{b.Provider}, true
	}
	return c
}

// A device that would match wrongly is refused, and so is a mode that there is not.
func TestDeviceThatCannotMatch(t *testing.T) {
	device, err := fabrictest.NewNetwork(fabrictest.Faults{}).Open(fabrictest.DeviceConfig{MasksMissWaiting: true})
	require.NoError(t, err)
	exchange := func(context.Context, string, []byte) ([][]byte, error) { return nil, errors.New("not reached") }
	config := Config{Size: 2, Exchange: exchange, Matching: MatchByProvider, Logger: quiet, Engine: &efa.Config{Device: device}}
	_, err = Open(deadline(t), config)
	var cannot *MatchingError
	require.ErrorAs(t, err, &cannot)
	require.ErrorIs(t, err, fabric.ErrNotSupported)
	require.ErrorContains(t, err, "mask")

	var wrong *ConfigError
	_, err = Open(deadline(t), Config{Size: 1, Matching: 7})
	require.ErrorAs(t, err, &wrong)
	require.ErrorContains(t, err, "Config.Matching: 7")
	_, err = Open(deadline(t), Config{Size: 1, HandedDown: -1})
	require.ErrorAs(t, err, &wrong)
}

// Communicators have contexts of 14 bits. When a rank has none left, all of them are told
// so, and what there is goes on.
func TestContextsRunOut(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		worlds := b.open(t, 3, Config{}, efa.Config{})
		worlds[1].engine.do(func(efa.Progress) { worlds[1].engine.contexts = tagged.MaxMatchedContext/2 - 1 })
		last := twins(t, worlds)
		require.EqualValues(t, tagged.MaxMatchedContext-1, last[1].context)
		onAll(worlds, func(rank int, c *Comm) {
			_, err := c.Dup(deadline(t))
			var none *ContextError
			check(t, errors.As(err, &none) && none.Limit == 8191, "rank %d: %v", rank, err)
		})
		isend(t, last[0], content(0, 1, 8), 1, MaxTag)
		expect(t, last[1], 0, AnyTag, Status{Source: 0, Tag: MaxTag, Length: 8}, 1)
		barrierOf(t, last)
	})
}

func barrierOf(t *testing.T, worlds []*Comm) {
	t.Helper()
	onAll(worlds, func(_ int, c *Comm) { barrier(t, c) })
}
