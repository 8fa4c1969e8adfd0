package collective

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/internal/jobtest"
	"github.com/weft-go/weft/internal/testenv"
)

// campaign is what the ranks of one job do: every kind of call with every root at sizes,
// every subject, and many small calls of all kinds, several at once. Every result is
// compared with a serial fold.
//
// By default it is a small one, with the other tests. make soak-collective does the
// whole; SOAK_PROVIDERS, SOAK_RANKS, SOAK_SIZES, SOAK_CALLS, SOAK_SUBJECTS and SOAK_SEED
// change it.
type campaign struct {
	Sizes    []int // bytes of the longest buffer of a rank, about
	Every    bool  // every algorithm at each size, and not one besides the one chosen
	Subjects []int // bytes for each rank, of calls with every subject
	Calls    int   // small ones
	Seed     uint64
	Seconds  int // at most
}

// sample is the campaign of every run of the tests.
var sample = campaign{
	Sizes: []int{0, 8, 5000, 300_000}, Subjects: []int{200}, Calls: 500, Seed: 1, Seconds: int(patience / time.Second),
}

// soaking says that the whole is asked for.
func soaking() bool { return os.Getenv("SOAK_RANKS") != "" }

// asked is the campaign that is asked for, and the numbers of ranks.
func asked(t *testing.T, provider string) (ranks []int, c campaign) {
	c = sample
	switch {
	case soaking():
	case provider == "sockets":
		// Its threads, two for each rank, share few cores here.
		c.Sizes, c.Subjects, c.Calls = []int{8, 300_000}, nil, 50
		return []int{3}, c
	default:
		return []int{4}, c
	}
	c.Sizes = testenv.Setting(t, "SOAK_SIZES", c.Sizes, list)
	c.Subjects = testenv.Setting(t, "SOAK_SUBJECTS", c.Subjects, list)
	c.Calls = testenv.Setting(t, "SOAK_CALLS", c.Calls, strconv.Atoi)
	c.Seed = testenv.Setting(t, "SOAK_SEED", c.Seed, func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) })
	c.Every, c.Seconds = true, 24*3600
	return testenv.Setting(t, "SOAK_RANKS", nil, list), c
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
	})
}

// playCampaign is a rank's part.
func playCampaign(world *comm.Comm, words string) error {
	var c campaign
	if err := json.Unmarshal([]byte(words), &c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.Seconds)*time.Second)
	defer cancel()
	other, err := world.Dup(ctx)
	if err != nil {
		return err
	}
	// One with parameters of its own, such as a cache that holds next to nothing.
	draw := rand.New(rand.NewPCG(c.Seed, 0))
	config := Config{Fanout: 1 + draw.IntN(16), CachePages: []int{-1, 1, 3}[draw.IntN(3)], Chunk: 500 + draw.IntN(5000)}
	if err := Configure(other, config); err != nil {
		return err
	}
	p := &player{world: world, other: other, mine: rand.New(rand.NewPCG(c.Seed, uint64(world.Rank()))), seed: c.Seed}
	if p.larder, err = newLarder(1 << 20); err != nil {
		return err
	}
	for _, part := range []func(context.Context, campaign) error{p.sweep, p.combine, p.storm} {
		if err := part(ctx, c); err != nil {
			return err
		}
	}
	if world.Rank() == 0 {
		fmt.Printf("%d calls of all sizes, %d of all subjects, %d small ones\n", p.swept, p.combined, p.stormed)
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
}

// next is a trial's seed, the same on all ranks.
func (p *player) next() uint64 {
	p.seed++
	return scramble(p.seed)
}

// sweep makes every kind of call, with every root and in both forms, at each size.
func (p *player) sweep(ctx context.Context, c campaign) error {
	for _, bytes := range c.Sizes {
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
			}
		}
	}
	return nil
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
	if p.mine.IntN(2) == 0 {
		p.larder.empty()
		t.larder = p.larder
	}
	a := s.attempt(p.world, t)
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
