package collective

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/jobtest"
	"github.com/weft-go/weft/internal/testenv"
)

// campaign is what the ranks of one job do: every kind of call with every root at sizes,
// every subject, and many small calls of all kinds, several at once. Every result is
// compared with a serial fold.
//
// By default it is a small one, with the other tests. make soak-collective does the
// whole; SOAK_PROVIDERS, SOAK_RANKS, SOAK_SIZES, SOAK_CALLS, SOAK_SUBJECTS, SOAK_SEED and
// SOAK_WORDS=none change it.
type campaign struct {
	Sizes    []int // bytes of the longest buffer of a rank, about
	Every    bool  // every algorithm at each size, and not one besides the one chosen
	Subjects []int // bytes for each rank, of calls with every subject
	Calls    int   // small ones
	Seed     uint64
	Seconds  int  // at most
	Wordless bool // see silence
	// Modes, if not nil, are those that a device of each rank's own may ask of memory and keys.
	Modes *fabric.MemoryMode
}

// sample is the campaign of every run of the tests.
var sample = campaign{
	Sizes: []int{0, 8, 5000, 300_000}, Subjects: []int{200}, Calls: 500, Seed: 1, Seconds: int(patience / time.Second),
}

// soaking says that the whole is asked for.
func soaking() bool { return os.Getenv("SOAK_RANKS") != "" }

// of is the campaign of a provider, by so many ranks.
func (c campaign) of(provider string) (ranks int, _ campaign) {
	if provider == "sockets" {
		// Its threads, two for each rank, share few cores here.
		c.Sizes, c.Subjects, c.Calls = []int{8, 300_000}, nil, 50
		return 3, c
	}
	return 4, c
}

// asked is the campaign that is asked for, and the numbers of ranks.
func asked(t *testing.T, provider string) (ranks []int, c campaign) {
	if !soaking() {
		size, c := sample.of(provider)
		return []int{size}, c
	}
	c = sample
	c.Sizes = numbers(t, "SOAK_SIZES", c.Sizes)
	c.Subjects = numbers(t, "SOAK_SUBJECTS", c.Subjects)
	c.Calls = testenv.Setting(t, "SOAK_CALLS", c.Calls, strconv.Atoi)
	c.Seed = testenv.Setting(t, "SOAK_SEED", c.Seed, func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) })
	c.Wordless = os.Getenv("SOAK_WORDS") == "none"
	c.Every, c.Seconds = true, 24*3600
	return numbers(t, "SOAK_RANKS", nil), c
}

// numbers is a setting that is a list, and may be an empty one.
func numbers(t *testing.T, name string, usual []int) []int {
	if text, set := os.LookupEnv(name); set && text == "" {
		return nil
	}
	return testenv.Setting(t, name, usual, list)
}

// list reads numbers such as 8, 4Ki and 64Mi, and ranges of them such as 1-17, separated
// by commas.
func list(text string) (all []int, err error) {
	for entry := range strings.SplitSeq(text, ",") {
		first, last, _ := strings.Cut(entry, "-")
		low, err := number(first)
		high := low
		if err == nil && last != "" {
			high, err = number(last)
		}
		if err != nil {
			return nil, err
		}
		for n := low; n <= high; n++ {
			all = append(all, n)
		}
	}
	return all, nil
}

func number(text string) (int, error) {
	shift := 0
	if digits, ok := strings.CutSuffix(text, "Ki"); ok {
		text, shift = digits, 10
	} else if digits, ok := strings.CutSuffix(text, "Mi"); ok {
		text, shift = digits, 20
	}
	n, err := strconv.Atoi(text)
	return n << shift, err
}

// Ranks are processes here.
func TestProcesses(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		ranks, c := asked(t, provider)
		for _, size := range ranks {
			t.Run(fmt.Sprintf("%d ranks", size), func(t *testing.T) { c.run(t, provider, size) })
		}
		if !soaking() && strings.HasPrefix(provider, "tcp") {
			c.Wordless = true
			t.Run("without words", func(t *testing.T) { c.run(t, provider, ranks[0]) })
		}
	})
}

// What a provider asks of memory and keys is less if it need not be as much: remote memory then
// goes by offsets, and not by addresses. Every way that a provider has is tried that a job does
// not come to by itself.
func TestMemoryModes(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		ranks, c := sample.of(provider)
		choice, err := fabric.Choose(preference(provider))
		require.NoError(t, err)
		known := []fabric.MemoryMode{choice.Info.MemoryMode()}
		bits := []fabric.MemoryMode{fabric.LocalRegistration, fabric.VirtualAddresses, fabric.AllocatedMemory, fabric.ProviderKeys}
		for chosen := range 1 << len(bits) {
			var may fabric.MemoryMode
			for i, bit := range bits {
				if chosen>>i&1 == 1 {
					may |= bit
				}
			}
			infos, err := fabric.Discover(deviceHints(choice.Info.Provider(), may))
			if errors.Is(err, fabric.ErrNotFound) {
				continue
			}
			require.NoError(t, err)
			// efa has it only where it need not go without registration.
			const writes = fabric.CanWrite | fabric.CanBeWritten
			if mode := infos[0].MemoryMode(); infos[0].Capabilities()&writes == writes && !slices.Contains(known, mode) {
				known = append(known, mode)
				c.Modes = &mode
				t.Run(mode.String(), func(t *testing.T) { c.run(t, provider, ranks) })
			}
		}
		t.Logf("%s asks for %v", provider, known)
	})
}

func preference(provider string) fabric.Preference {
	return fabric.Preference{Providers: []string{provider}, Require: true, Wanted: fabric.RemoteMemory, Logger: slog.New(slog.DiscardHandler)}
}

// deviceHints are for a device of a rank.
func deviceHints(provider string, modes fabric.MemoryMode) fabric.Hints {
	return fabric.Hints{
		Provider: provider, Endpoint: fabric.ReliableDatagram, MemoryMode: modes, OrderedSends: true, OneThread: true,
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.SourceAddress | fabric.RemoteMemory,
	}
}

// openDevice is a device that asks for exactly so much.
func openDevice(provider string, modes fabric.MemoryMode) (*fabric.Port, error) {
	choice, err := fabric.Choose(preference(provider))
	if err != nil {
		return nil, err
	}
	infos, err := fabric.Discover(deviceHints(choice.Info.Provider(), modes))
	if err != nil {
		return nil, err
	}
	if got := infos[0].MemoryMode(); got != modes {
		return nil, fmt.Errorf("%s asks for %v, not %v", provider, got, modes)
	}
	return fabric.OpenPort(infos[0], fabric.PortConfig{})
}

// run runs a job of so many ranks.
func (c campaign) run(t *testing.T, provider string, size int) {
	begin := time.Now()
	words, err := json.Marshal(c)
	require.NoError(t, err)
	errs, said := jobtest.Ranks(t, size, provider, "campaign", string(words))
	var wrong error
	for rank, err := range errs {
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("rank %d of %d: %w, %s", rank, size, err, said[rank]))
		}
	}
	require.NoError(t, wrong)
	t.Logf("%s, %d ranks: %s, in %.1f s", provider, size, strings.TrimSpace(said[0]), time.Since(begin).Seconds())
}

// silence has a communicator that has had no call do without words: this rank is told of puts
// by notices, as where the provider carries no immediates.
func silence(c *comm.Comm) error {
	g, err := groupOf(c, nil)
	if err != nil {
		return err
	}
	c.Reactor().Do(func(progress) { g.window = -1 })
	return nil
}

// spoken is an error if a rank was told of puts by words nevertheless.
func spoken(c *comm.Comm) (err error) {
	c.Reactor().Do(func(progress) {
		for rank, m := range c.Extended().(*group).members {
			if m.words+m.heard > 0 {
				err = fmt.Errorf("%d words to rank %d, and %d from it", m.words, rank, m.heard)
			}
		}
	})
	return err
}

// pantry is how large an arena is that what a rank gives to a call and gets of it fits into,
// but for some of the largest, if the arenas of so many ranks would have too much together.
func (c campaign) pantry(size int) int {
	const least, most = 1 << 20, 2 << 30
	if len(c.Sizes) == 0 {
		return least
	}
	return max(least, min(3*slices.Max(c.Sizes), most/size))
}

// play is a rank's part.
func (c campaign) play(world *comm.Comm) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.Seconds)*time.Second)
	defer cancel()
	other, err := world.Dup(ctx)
	if err != nil {
		return err
	}
	// One with parameters of its own, such as a cache that holds next to nothing.
	draw := rand.New(rand.NewPCG(c.Seed, uint64(world.Size())))
	config := Config{Fanout: 1 + draw.IntN(16), CachePages: []int{-1, 1, 3}[draw.IntN(3)], Chunk: 500 + draw.IntN(5000)}
	if err := Configure(other, config); err != nil {
		return err
	}
	if c.Wordless {
		if err := errors.Join(silence(world), silence(other)); err != nil {
			return err
		}
	}
	p := &player{world: world, other: other, mine: rand.New(rand.NewPCG(c.Seed, uint64(world.Rank()))), seed: c.Seed}
	if p.larder, err = newLarder(c.pantry(world.Size())); err != nil {
		return err
	}
	for _, part := range []func(context.Context, campaign) error{p.sweep, p.combine, p.storm} {
		if err := part(ctx, c); err != nil {
			return err
		}
	}
	if c.Wordless {
		if err := errors.Join(spoken(world), spoken(other)); err != nil {
			return err
		}
	}
	if world.Rank() == 0 {
		fmt.Printf("%d calls of all sizes and %d by the provider, %d of all subjects, %d small ones; data in an arena of %d bytes: %d times\n",
			p.swept, p.provided, p.combined, p.stormed, len(p.larder.arena.Bytes()), p.stored)
	}
	return errors.Join(p.larder.arena.Close(), other.Close())
}

// player is a rank in a campaign.
type player struct {
	world, other             *comm.Comm
	mine                     *rand.Rand // for what ranks choose on their own
	larder                   *larder    // for some of the calls
	seed                     uint64     // of the last trial
	swept, combined, stormed int
	provided                 int                          // by the provider's own collectives
	refuses                  map[schedule.Collective]bool // what the provider does not do of a size
	stored                   int                          // trials with data in the larder
}

// next is a trial's seed, the same on all ranks.
func (p *player) next() uint64 {
	p.seed++
	return scramble(p.seed)
}

// sweep makes every kind of call, with every root and in both forms, at each size.
func (p *player) sweep(ctx context.Context, c campaign) error {
	for _, bytes := range c.Sizes {
		p.refuses = make(map[schedule.Collective]bool)
		for i, k := range kinds {
			for root := range k.roots(p.world.Size()) {
				seed := p.next()
				s := subjects[seed%uint64(len(subjects))]
				others := k.algorithms(s)
				if !c.Every || bytes > 1<<20 {
					at := (root + i) % len(others)
					others = others[at : at+1]
				}
				for _, a := range append([]schedule.Algorithm{schedule.Default}, others...) {
					t := trial{kind: k, root: root, bytes: bytes, seed: p.next(), algorithm: a}
					t.inPlace = t.seed&2 == 0
					if err := p.play(ctx, s, t); err != nil {
						return err
					}
					p.swept++
				}
				if err := p.provide(ctx, s, trial{kind: k, root: root, bytes: bytes, seed: p.next()}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// provide has the provider make a call, if it does such calls. Which it does is the same on all
// ranks.
func (p *player) provide(ctx context.Context, s subject, t trial) error {
	if !strings.HasPrefix(p.world.Provider(), "tcp") || t.kind.uneven || p.refuses[t.kind.collective] {
		return nil
	}
	t.algorithm = schedule.Provider
	err := p.play(ctx, s, t)
	switch {
	case err == nil:
		p.provided++
	case refusedHere(err):
		if !combines(t.kind.collective) {
			p.refuses[t.kind.collective] = true
		}
		err = nil
	}
	return err
}

// combine makes all kinds of calls that combine, with every subject.
func (p *player) combine(ctx context.Context, c campaign) error {
	for _, bytes := range c.Subjects {
		for _, s := range subjects {
			for _, k := range kinds {
				if !combines(k.collective) {
					continue
				}
				t := trial{kind: k, bytes: bytes * p.world.Size(), seed: p.next()}
				t.root, t.inPlace = int(t.seed>>8)%k.roots(p.world.Size()), t.seed&2 == 0
				if err := p.play(ctx, s, t); err != nil {
					return err
				}
				p.combined++
			}
		}
	}
	return nil
}

// play makes a call in one of the two forms.
func (p *player) play(ctx context.Context, s subject, t trial) error {
	if t.bytes > 1<<20 {
		// What the one before had is garbage, and many ranks share the memory.
		runtime.GC()
	}
	if p.mine.IntN(2) == 0 {
		p.larder.empty()
		t.larder = p.larder
	}
	a := s.attempt(p.world, t)
	if t.larder != nil && !t.larder.isEmpty() {
		p.stored++
	}
	var err error
	if p.mine.IntN(2) == 0 {
		err = a.run(ctx)
	} else if q, begun := a.start(); begun != nil {
		err = begun
	} else {
		err = q.Wait(ctx)
	}
	return ended(s, t, a, err)
}

// ended is what is wrong with an attempt that has ended with err.
func ended(s subject, t trial, a attempt, err error) error {
	if err == nil {
		err = a.check()
	}
	if err != nil {
		return fmt.Errorf("%v of %v: %w", t, s, err)
	}
	return nil
}

// begun is a call of a storm that goes on.
type begun struct {
	subject subject
	trial   trial
	attempt attempt
	request *Request
}

// storm makes small calls of all kinds, with all roots, on two communicators. Each rank
// chooses on its own which to wait for at once, and in which order for the others.
func (p *player) storm(ctx context.Context, c campaign) error {
	const most = 3 * slots
	var under []begun
	for range c.Calls {
		t := trial{seed: p.next()}
		draw := rand.New(rand.NewPCG(t.seed, 0)) // the same on all ranks
		s := subjects[draw.IntN(len(subjects))]
		t.kind = kinds[draw.IntN(len(kinds))]
		t.root, t.inPlace = draw.IntN(t.kind.roots(p.world.Size())), draw.IntN(2) == 0
		if t.bytes = draw.IntN(600); draw.IntN(50) == 0 {
			t.bytes = draw.IntN(100_000)
		}
		if draw.IntN(4) == 0 {
			algorithms := t.kind.algorithms(s)
			t.algorithm = algorithms[draw.IntN(len(algorithms))]
		}
		on := p.world
		if draw.IntN(3) == 0 {
			on = p.other
		}
		a := s.attempt(on, t)
		p.stormed++
		if p.mine.IntN(3) == 0 {
			if err := ended(s, t, a, a.run(ctx)); err != nil {
				return err
			}
			continue
		}
		q, err := a.start()
		if err != nil {
			return fmt.Errorf("%v of %v: %w", t, s, err)
		}
		under = append(under, begun{s, t, a, q})
		for len(under) == most || len(under) > 0 && p.mine.IntN(3) == 0 {
			i := p.mine.IntN(len(under))
			b := under[i]
			under[i] = under[len(under)-1]
			under = under[:len(under)-1]
			if err := p.await(ctx, b); err != nil {
				return err
			}
		}
	}
	for _, b := range under {
		if err := p.await(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// await waits for a call in one of several ways.
func (p *player) await(ctx context.Context, b begun) error {
	switch p.mine.IntN(4) {
	case 0:
		for {
			if done, err := b.request.Test(); done {
				return ended(b.subject, b.trial, b.attempt, err)
			}
			if p.mine.IntN(100) == 0 {
				break
			}
		}
	case 1:
		given, cancel := context.WithCancel(ctx)
		cancel()
		if err := b.request.Wait(given); !errors.Is(err, context.Canceled) {
			return ended(b.subject, b.trial, b.attempt, err)
		}
	}
	return ended(b.subject, b.trial, b.attempt, b.request.Wait(ctx))
}
