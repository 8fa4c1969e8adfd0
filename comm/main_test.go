package comm

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/jobtest"
	"github.com/weft-go/weft/internal/testenv"
)

func TestMain(m *testing.M) {
	jobtest.Play(playRank)
	fabrictest.Main(m)
}

// patience is far beyond what any test needs on a slow machine.
const patience = 60 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// each runs a test in every setting, in both modes of matching. It is to leave no
// goroutine behind.
func each(t *testing.T, test func(t *testing.T, b *bed)) {
	onEach(t, func(t *testing.T, b *bed) {
		leaks := goleak.IgnoreCurrent()
		t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
		test(t, b)
	})
}

// byProvider is each for what there is only where the provider matches.
func byProvider(t *testing.T, test func(t *testing.T, b *bed)) {
	each(t, func(t *testing.T, b *bed) {
		if b.matching == MatchByProvider {
			test(t, b)
		}
	})
}

func onEach(t *testing.T, test func(t *testing.T, b *bed)) {
	for _, s := range fabrictest.Settings() {
		t.Run(s.Name, func(t *testing.T) {
			for _, m := range []Matching{MatchInSoftware, MatchByProvider} {
				t.Run(m.String(), func(t *testing.T) {
					b := &bed{Bed: fabrictest.NewBed(t, s), matching: m}
					if m == MatchByProvider {
						testenv.Need(t, "matching by "+s.Name, matches(s.Provider))
					}
					test(t, b)
				})
			}
		})
	}
}

// matches says why matching cannot be left to a provider, if so.
func matches(provider string) error {
	if provider == "" {
		return nil
	}
	matchable.Lock()
	defer matchable.Unlock()
	why, known := matchable.by[provider]
	if !known {
		r, err := efa.Open(&efa.Config{Providers: []string{provider}, Require: true, Logger: quiet})
		if why = err; err == nil {
			why = errors.Join(r.CanMatch(), r.Close())
		}
		matchable.by[provider] = why
	}
	return why
}

var matchable = struct {
	sync.Mutex
	by map[string]error
}{by: map[string]error{}}

// bed is a device setting at work.
type bed struct {
	*fabrictest.Bed
	matching Matching
	jobs     *jobs // of the test's cases, which share them
}

// open opens the worlds of a job, which are closed at the end of the test.
func (b *bed) open(t *testing.T, size int, config Config, engine efa.Config) []*Comm {
	t.Helper()
	worlds := b.openFor(t, size, config, engine)
	t.Cleanup(func() { closeAll(t, worlds) })
	return worlds
}

// openFor is open for a test that ends the worlds by itself, or has one lost.
func (b *bed) openFor(t *testing.T, size int, config Config, engine efa.Config) []*Comm {
	t.Helper()
	worlds := make([]*Comm, size)
	errs := make([]error, size)
	m := jobtest.NewMeeting(size)
	ctx := deadline(t)
	var all sync.WaitGroup
	for rank := range worlds {
		c := b.config(t, config, engine)
		c.Rank, c.Size, c.Exchange = rank, size, m.Exchange(rank)
		all.Go(func() { worlds[rank], errs[rank] = Open(ctx, c) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	t.Cleanup(func() { onAll(worlds, func(_ int, c *Comm) { _ = c.Close() }) })
	return worlds
}

// config adds what is the setting's.
func (b *bed) config(t *testing.T, c Config, e efa.Config) Config {
	t.Helper()
	e.Logger, c.Logger = quiet, quiet
	if b.Network != nil {
		e.Device = b.Open(t)
	} else {
		e.Providers, e.Require = []string{b.Provider}, true
	}
	c.Engine, c.Matching = &e, b.matching
	return c
}

// closeAll closes worlds as their programs would, at the same time.
func closeAll(t *testing.T, worlds []*Comm) {
	errs := make([]error, len(worlds))
	onAll(worlds, func(rank int, c *Comm) { errs[rank] = c.Close() })
	for rank, err := range errs {
		require.NoError(t, err, "rank %d", rank)
	}
}

// onAll runs f for each rank, at the same time.
func onAll(worlds []*Comm, f func(rank int, c *Comm)) {
	var all sync.WaitGroup
	for rank, c := range worlds {
		all.Go(func() { f(rank, c) })
	}
	all.Wait()
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// content is what message i of a sender says.
func content(sender, i, size int) []byte {
	seed := uint32(sender)*0x9e3779b1 + uint32(i)*0x85ebca6b
	b := make([]byte, size)
	for j := range b {
		b[j] = byte(seed>>(j%4*8)) + byte(j*167) + byte(j>>8)
	}
	return b
}
