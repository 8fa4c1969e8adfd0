// A matcher is used by one goroutine: the race detector has nothing to see in it.

//go:build !race

package tagged_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tagged"
)

var everything = tagged.Pattern{Source: tagged.AnySource, Ignore: tagged.AnyTag}

// Messages that came before their receives are received in order and in
// reverse, by exact receives and by each kind of wildcard.
func TestMatcherUnexpectedOrder(t *testing.T) {
	patterns := map[string]func(n uint32) tagged.Pattern{
		"exact": exactPattern,
		"any source": func(n uint32) tagged.Pattern {
			return tagged.Pattern{Context: 1, Source: tagged.AnySource, Tag: uint64(n)}
		},
		"mask": func(n uint32) tagged.Pattern {
			return tagged.Pattern{Context: 1, Source: n % 64, Tag: 1<<40 | uint64(n), Ignore: 1 << 40}
		},
	}
	for name, pattern := range patterns {
		for _, count := range []uint32{1000, 100_000} {
			t.Run(fmt.Sprintf("%s/%d", name, count), func(t *testing.T) {
				var m tagged.Matcher[uint32, uint32]
				for _, order := range []func(n uint32) uint32{
					func(n uint32) uint32 { return n },
					func(n uint32) uint32 { return count - 1 - n },
				} {
					for n := range count {
						_, matched := m.Arrive(envelope(exactPattern(n)), n)
						require.False(t, matched)
					}
					for n := range count {
						_, message, matched := m.Post(pattern(order(n)), n)
						if !matched || message.Value != order(n) || message.Envelope != envelope(exactPattern(order(n))) {
							t.Fatalf("receive %d: %+v, %t", n, message, matched)
						}
					}
					require.Zero(t, m.Unexpected())
				}
			})
		}
	}
	t.Run("any tag", func(t *testing.T) {
		var m tagged.Matcher[uint32, uint32]
		for n := range uint32(100_000) {
			m.Arrive(envelope(exactPattern(n)), n)
		}
		for n := range uint32(100_000) {
			_, message, matched := m.Post(tagged.Pattern{Context: 1, Source: tagged.AnySource, Ignore: tagged.AnyTag}, n)
			if !matched || message.Value != n {
				t.Fatalf("receive %d: %+v, %t", n, message, matched)
			}
		}
	})
}

// More masks than there are classes for, over and over, while messages wait:
// each is in the order of arrival.
func TestMatcherManyMasks(t *testing.T) {
	const masks = 40
	var m tagged.Matcher[int, int]
	for n := range 10 * masks {
		m.Arrive(tagged.Envelope{Tag: uint64(n % 10)}, n)
	}
	for round := range 10 {
		for mask := range masks {
			// Takes the tags of 0 to 9 alike, and no other.
			p := tagged.Pattern{Source: tagged.AnySource * uint32(mask%2), Ignore: 15 | uint64(mask)<<32}
			message, ok := m.Take(p)
			require.True(t, ok)
			require.Equal(t, masks*round+mask, message.Value)
		}
		require.NoError(t, m.Check())
	}
	require.Zero(t, m.Unexpected())

	for mask := range masks {
		m.Post(tagged.Pattern{Ignore: 15 | uint64(mask)<<32}, mask)
	}
	for mask := range masks {
		receive, matched := m.Arrive(tagged.Envelope{Tag: 7}, 0)
		require.True(t, matched)
		require.Equal(t, mask, receive)
		require.NoError(t, m.Check())
	}
}

// A ticket of a receive that is gone names none, though another is in its place.
func TestMatcherStaleTickets(t *testing.T) {
	var m tagged.Matcher[string, string]
	_, ok := m.Cancel(tagged.ReceiveTicket[string]{})
	require.False(t, ok)
	old, _, _ := m.Post(everything, "old")
	_, matched := m.Arrive(tagged.Envelope{}, "")
	require.True(t, matched)
	current, _, _ := m.Post(everything, "new")
	require.NotEqual(t, old, current)
	_, ok = m.Cancel(old)
	require.False(t, ok)
	receive, ok := m.Cancel(current)
	require.True(t, ok)
	require.Equal(t, "new", receive)
	_, ok = m.Cancel(current)
	require.False(t, ok)
}

func TestMatcherDoesNotAllocate(t *testing.T) {
	for _, depth := range []uint32{0, 1000, 100_000} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			var expecting, flooded tagged.Matcher[*buffer, *buffer]
			for n := range depth {
				expecting.Post(mixedPattern(n), nil)
				flooded.Arrive(envelope(mixedPattern(n)), nil)
			}
			value := new(buffer)
			requireNoAllocs(t, func() {
				for n := range uint32(800) {
					p := mixedPattern(n)
					p.Context += 2 // away from those that wait
					ticket, _, _ := expecting.Post(p, value)
					expecting.Cancel(ticket)
					expecting.Post(p, value)
				}
				for n := range uint32(800) {
					e := envelope(mixedPattern(n))
					e.Context += 2
					expecting.Arrive(e, value)
					flooded.Arrive(e, value)
				}
				for n := range uint32(800) {
					p := mixedPattern(n)
					p.Context += 2
					flooded.Probe(p)
					if n%2 == 0 {
						flooded.Take(p)
					} else {
						flooded.Post(p, value)
					}
				}
			})
			require.Equal(t, int(depth), expecting.Posted())
			require.Zero(t, expecting.Unexpected())
			require.Equal(t, int(depth), flooded.Unexpected())
			require.Zero(t, flooded.Posted())
		})
	}
}

// What a flood took is given back, in whatever order it goes, and while one
// receive and one message stay.
func TestMatcherGivesMemoryBack(t *testing.T) {
	const flood = 300_000
	live := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	var m tagged.Matcher[uint32, uint32]
	order := rand.New(rand.NewPCG(3, 4)).Perm(flood)
	tickets := make([]tagged.ReceiveTicket[uint32], flood)
	stays := tagged.Pattern{Context: 9, Ignore: 1}
	before := live()
	first, _, _ := m.Post(stays, 0)
	m.Arrive(tagged.Envelope{Context: 10, Tag: 1}, 0)

	for n := range uint32(flood) {
		m.Arrive(envelope(mixedPattern(n)), n)
	}
	m.Probe(mixedPattern(7)) // builds the class of the mask
	flooded := live() - before
	for _, n := range order {
		message, ok := m.Take(mixedPattern(uint32(n)))
		require.True(t, ok)
		require.Equal(t, uint32(n), message.Value)
	}
	require.Equal(t, 1, m.Unexpected())
	require.Less(t, live(), before+flooded/20)

	for n := range uint32(flood) {
		tickets[n], _, _ = m.Post(mixedPattern(n), n)
	}
	flooded = live() - before
	for _, n := range order {
		_, ok := m.Cancel(tickets[n])
		require.True(t, ok)
	}
	clear(tickets)
	require.Equal(t, 1, m.Posted())
	require.Less(t, live(), before+flooded/10)
	require.NoError(t, m.Check())
	_, ok := m.Cancel(first)
	require.True(t, ok)
}

// Tags that a peer may choose so that a weak hash would put them in one place
// do not make lookups slow, whatever the seed is: half of the seeds, at least,
// are as good as expected of random keys.
func TestMatcherHashFlooding(t *testing.T) {
	const count = 10_000
	for name, tag := range map[string]func(n uint64) uint64{
		"consecutive":   func(n uint64) uint64 { return n },
		"low bits zero": func(n uint64) uint64 { return n << 12 },
		"high half":     func(n uint64) uint64 { return n << 32 },
		"highest bits":  func(n uint64) uint64 { return n << 50 },
		"both halves":   func(n uint64) uint64 { return n<<32 | n },
		"cancelling":    func(n uint64) uint64 { return n<<32 | uint64(uint32(-n)) },
		"multiples":     func(n uint64) uint64 { return n * 0x9e3779b97f4a7c15 },
	} {
		t.Run(name, func(t *testing.T) {
			var average []float64
			for range 15 {
				var m tagged.Matcher[int, int]
				for n := range uint64(count) {
					m.Arrive(tagged.Envelope{Tag: tag(n)}, 0)
				}
				entries, steps := m.Chains()
				require.Equal(t, count, entries)
				average = append(average, float64(steps)/count)
			}
			slices.Sort(average)
			require.Less(t, average[len(average)/2], 2.5)
		})
	}
}

// Two matchers do not have the same hash: what is slow in one is not in all.
func TestMatcherHashIsSeeded(t *testing.T) {
	steps := map[int]bool{}
	for range 4 {
		var m tagged.Matcher[int, int]
		for n := range uint64(1000) {
			m.Arrive(tagged.Envelope{Tag: n}, 0)
		}
		_, s := m.Chains()
		steps[s] = true
	}
	require.Greater(t, len(steps), 1)
}
