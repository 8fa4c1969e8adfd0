package cost_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/collective/schedule/cost"
)

const (
	alpha    = 1000 * time.Nanosecond // latency
	overhead = 100 * time.Nanosecond
	hop      = alpha + overhead // of a put without data
	beta     = 4                // nanoseconds per byte on a link
	gamma    = 2                // per byte to combine
)

// plain is a network in which each rank is alone on its node.
func plain() cost.Network {
	return cost.Network{Latency: alpha, Overhead: overhead, Bandwidth: 1e9 / beta, ReduceRate: 1e9 / gamma}
}

func callOf(collective schedule.Collective, algorithm schedule.Algorithm, size, length int) schedule.Call {
	c := schedule.Call{Collective: collective, Size: size, Length: length}
	c.Algorithm, c.Commutative = algorithm, true
	return c
}

func requireCost(t *testing.T, want time.Duration, call schedule.Call, network cost.Network) {
	t.Helper()
	got, err := cost.Cost(call, 1, network)
	require.NoError(t, err)
	require.Equal(t, want, got, "%+v", call)
}

// Where nothing has to wait for a link, calls take what is written in textbooks.
func TestClosedForms(t *testing.T) {
	const length = 1 << 12
	for rounds := 1; rounds <= 6; rounds++ {
		size := 1 << rounds
		n, k := time.Duration(size), time.Duration(rounds)
		const all = time.Duration(length)
		block := all / n
		expect := func(want time.Duration, collective schedule.Collective, algorithm schedule.Algorithm, length time.Duration) {
			t.Helper()
			requireCost(t, want, callOf(collective, algorithm, size, int(length)), plain())
		}

		expect(k*hop, schedule.CollectiveBarrier, schedule.Dissemination, 0)
		expect(k*(hop+(beta+gamma)*all), schedule.CollectiveReduce, schedule.Binomial, all)

		expect(k*(hop+(beta+gamma)*all), schedule.CollectiveAllreduce, schedule.RecursiveDoubling, all)
		expect(2*(n-1)*(hop+beta*block)+(n-1)*gamma*block, schedule.CollectiveAllreduce, schedule.Ring, all)
		halves := 2*k*hop + (2*beta+gamma)*(all-block)
		expect(halves, schedule.CollectiveAllreduce, schedule.Rabenseifner, all)
		ordered := callOf(schedule.CollectiveAllreduce, schedule.Rabenseifner, size, length)
		ordered.Commutative = false
		requireCost(t, halves, ordered, plain())

		expect(k*hop+beta*(all-block), schedule.CollectiveGather, schedule.Binomial, block)
		expect(k*hop+beta*(all-block), schedule.CollectiveScatter, schedule.Binomial, block)
		expect(k*hop+beta*(all-block), schedule.CollectiveAllgather, schedule.RecursiveDoubling, block)
		expect((n-1)*(hop+beta*block), schedule.CollectiveAllgather, schedule.Ring, block)
		expect(k*hop+(beta+gamma)*(all-block), schedule.CollectiveReduceScatter, schedule.RecursiveHalving, block)
		expect((n-1)*(hop+(beta+gamma)*block), schedule.CollectiveReduceScatter, schedule.Ring, block)
		expect(k*(hop+beta*all/2), schedule.CollectiveAlltoall, schedule.Bruck, block)

		// To begin a put takes no longer than to send it, so that the link is what counts.
		expect(hop+(n-1)*beta*block, schedule.CollectiveGather, schedule.Direct, block)
		expect(hop+(n-1)*beta*block, schedule.CollectiveScatter, schedule.Direct, block)
		expect(hop+(n-1)*beta*block, schedule.CollectiveAllgather, schedule.Direct, block)
		expect(hop+(n-1)*beta*block, schedule.CollectiveAlltoall, schedule.Pairwise, block)
		// What the last one has is added to what the lower ranks have, and that to the rest.
		expect(hop+(n-1)*beta*block+min(n-1, 2)*gamma*block, schedule.CollectiveReduceScatter, schedule.Pairwise, block)

		// Or it takes longer.
		slow := plain()
		slow.Overhead = beta * all
		requireCost(t, (n-1)*slow.Overhead+alpha+beta*block, callOf(schedule.CollectiveAlltoall, schedule.Pairwise, size, int(block)), slow)

		chain := callOf(schedule.CollectiveBcast, schedule.Tree, size, length)
		chain.Fanout = 1
		requireCost(t, (n-1)*(hop+beta*all), chain, plain())
		chain.Chunk = length / 8
		requireCost(t, (n-1)*(hop+beta*all/8)+7*beta*all/8, chain, plain())
		star := callOf(schedule.CollectiveBcast, schedule.Tree, size, length)
		star.Fanout = size
		requireCost(t, hop+(n-1)*beta*all, star, plain())
	}
}

// What two ranks do on paper, number by number.
func TestEachSetting(t *testing.T) {
	const bytes = 100
	bcast := callOf(schedule.CollectiveBcast, schedule.Tree, 2, bytes)
	bcast.InPlace = true
	requireCost(t, 0, bcast, cost.Network{})
	requireCost(t, alpha, bcast, cost.Network{Latency: alpha})
	requireCost(t, alpha, bcast, cost.Network{Overhead: alpha})
	requireCost(t, alpha, bcast, cost.Network{Receive: alpha})
	requireCost(t, bytes*beta, bcast, cost.Network{Bandwidth: 1e9 / beta})
	requireCost(t, alpha, bcast, cost.Network{Acknowledge: alpha})
	requireCost(t, 5*alpha, bcast, cost.Network{Latency: alpha, Acknowledge: 4 * alpha, Receive: 3 * alpha})
	requireCost(t, 0, bcast, cost.Network{ReduceRate: 1, CopyRate: 1})
	requireCost(t, 0, bcast, cost.Network{LocalLatency: alpha, LocalOverhead: alpha, LocalReceive: alpha, LocalBandwidth: 1})
	copied := bcast
	copied.InPlace = false
	requireCost(t, bytes*beta, copied, cost.Network{CopyRate: 1e9 / beta})

	local := cost.Network{RanksPerNode: 2, Latency: time.Hour, Overhead: time.Hour, Receive: time.Hour, Acknowledge: time.Hour, Bandwidth: 1}
	requireCost(t, 0, bcast, local)
	local.LocalLatency, local.LocalOverhead, local.LocalReceive, local.LocalBandwidth = alpha, 2*alpha, 4*alpha, 1e9/beta
	requireCost(t, 7*alpha+bytes*beta, bcast, local)
	local.LocalByCore = true
	requireCost(t, 7*alpha+bytes*beta, bcast, local)

	reduce := callOf(schedule.CollectiveAllreduce, schedule.RecursiveDoubling, 2, bytes)
	requireCost(t, bytes*gamma, reduce, cost.Network{ReduceRate: 1e9 / gamma})
	got, err := cost.Cost(reduce, 8, cost.Network{ReduceRate: 1e9 / gamma})
	require.NoError(t, err)
	require.Equal(t, time.Duration(8*bytes*gamma), got, "elements of 8 bytes")

	// Whoever settles waits until the other is known to have its own, and then copies.
	exchange := callOf(schedule.CollectiveAlltoall, schedule.Pairwise, 2, bytes)
	exchange.InPlace = true
	requireCost(t, 3*alpha+bytes*beta, exchange, cost.Network{Latency: alpha, Acknowledge: 2 * alpha, CopyRate: 1e9 / beta})
}

// Ranks of a node share its links and its cores.
func TestSharing(t *testing.T) {
	const bytes = 100
	// Each of two ranks on each of two nodes puts to both ranks of the other.
	all := callOf(schedule.CollectiveAllgather, schedule.Direct, 4, bytes)
	two := cost.Network{Latency: alpha, Bandwidth: 1e9 / beta, RanksPerNode: 2}
	two.LinksPerNode = 1
	requireCost(t, alpha+4*beta*bytes, all, two)
	// With two links, both begin with the same rank, whose link carries one after the other,
	// and so they end one put later than they would otherwise.
	two.LinksPerNode = 2
	requireCost(t, alpha+3*beta*bytes, all, two)
	two.LinksPerNode = 0
	requireCost(t, alpha+3*beta*bytes, all, two)
	two.LinksPerNode = 4
	requireCost(t, alpha+3*beta*bytes/2, all, two)
	two.LinksPerNode, two.LocalLatency = 3, time.Second
	requireCost(t, time.Second, all, two)

	// Three ranks put to the one that is alone on its node.
	gather := callOf(schedule.CollectiveGather, schedule.Direct, 4, bytes)
	gather.Root = 3
	requireCost(t, alpha+3*beta*bytes, gather, cost.Network{Latency: alpha, Bandwidth: 1e9 / beta, RanksPerNode: 3})

	// Four ranks combine twice each.
	reduce := callOf(schedule.CollectiveAllreduce, schedule.RecursiveDoubling, 4, bytes)
	cores := cost.Network{ReduceRate: 1e9 / gamma, RanksPerNode: 4}
	for count, times := range map[int]time.Duration{0: 2, 1: 8, 2: 4, 4: 2, 9: 2} {
		cores.CoresPerNode = count
		requireCost(t, times*gamma*bytes, reduce, cores)
	}
	// As many as three may be on the same.
	cores.CoresPerNode = 2
	for times, placed := range map[time.Duration][]int{4: {1, 0, 0, 1}, 6: {0, 0, 1, 0}, 8: {1, 1, 1, 1}} {
		cores.Placed = placed
		requireCost(t, times*gamma*bytes, reduce, cores)
	}
	// What one on the same core has put is combined twice as fast: in no round, in one of the two, in both.
	together := cores
	together.ReduceTogether = 2 * cores.ReduceRate
	for _, c := range []struct {
		times  time.Duration
		placed []int
	}{{4, []int{0, 1, 1, 0}}, {3, []int{0, 0, 1, 1}}, {3, []int{0, 1, 0, 1}}, {4, []int{1, 1, 1, 1}}} {
		together.Placed = c.placed
		requireCost(t, c.times*gamma*bytes, reduce, together)
	}
	for _, wrong := range [][]int{{0, 1, 0}, {0, 1, 0, 2}, {0, -1, 0, 1}, {}} {
		cores.Placed = wrong
		var refused *cost.NetworkError
		require.ErrorAs(t, cores.Check(), &refused, "%v", wrong)
		require.Equal(t, "Placed", refused.Field)
	}

	// Four ranks put to the three others each.
	exchange := callOf(schedule.CollectiveAlltoall, schedule.Pairwise, 4, bytes)
	local := cost.Network{LocalBandwidth: 1e9 / beta, RanksPerNode: 4, CoresPerNode: 2}
	requireCost(t, 3*beta*bytes, exchange, local)
	local.LocalByCore = true
	requireCost(t, 6*beta*bytes, exchange, local)

	// Who moves data alone is twice as fast. Of two, one has begun alone.
	local.LocalAlone = 2 * local.LocalBandwidth
	requireCost(t, beta*bytes/2, callOf(schedule.CollectiveBcast, schedule.Tree, 2, bytes), local)
	requireCost(t, beta*bytes, callOf(schedule.CollectiveAllgather, schedule.Direct, 2, bytes), local)
	requireCost(t, 3*beta*bytes/2, callOf(schedule.CollectiveBcast, schedule.Tree, 4, bytes), local)
	// Whatever two do at the same time they do at half of what they have alone: here each copies its own.
	copied := local
	copied.CopyRate = 1e9 / beta
	requireCost(t, beta*bytes+2*beta*bytes, callOf(schedule.CollectiveAllgather, schedule.Direct, 2, bytes), copied)
	// What others have put comes from their cores, and is copied no faster than it is put.
	handed := copied
	handed.CopyRate, handed.Slot, handed.Handed = 4*local.LocalAlone, 1, true
	bcast := callOf(schedule.CollectiveBcast, schedule.Tree, 2, bytes)
	bcast.InPlace = true
	requireCost(t, beta*bytes/2+beta*bytes/8, bcast, handed)
	handed.Mapped = true
	requireCost(t, beta*bytes/2+beta*bytes/2, bcast, handed)
	// Or to read there may be twice as fast as to write.
	handed.LocalGiven = 2 * handed.LocalAlone
	requireCost(t, beta*bytes/2+beta*bytes/4, bcast, handed)
	local.LocalByCore = false
	requireCost(t, 3*beta*bytes, exchange, local)
}

// Where ranks have their memory from each other, the data of one go to all others at the same time, if
// that is where the callers want them.
func TestFetching(t *testing.T) {
	const bytes = 100
	scatter := callOf(schedule.CollectiveScatter, schedule.Direct, 4, bytes)
	local := cost.Network{LocalLatency: alpha, LocalBandwidth: 1e9 / beta, LocalByCore: true, RanksPerNode: 4, CoresPerNode: 4, Slot: 1}
	// That they are ready goes before.
	requireCost(t, 2*alpha+3*beta*bytes, scatter, local)
	local.Mapped = true
	requireCost(t, 2*alpha+3*beta*bytes, scatter, local)
	local.Direct, local.DirectMoved, local.LocalDirect = 1, bytes+1, 2*local.LocalBandwidth
	requireCost(t, 2*alpha+beta*bytes/2, callOf(schedule.CollectiveGather, schedule.Direct, 4, bytes), local)
	requireCost(t, 2*alpha+beta*bytes, callOf(schedule.CollectiveReduce, schedule.Tree, 2, bytes), local)
	local.LocalDirect = 0
	requireCost(t, 2*alpha+3*beta*bytes, scatter, local)
	local.DirectMoved = bytes
	requireCost(t, 2*alpha+beta*bytes, scatter, local)
	// The rank that puts copies what it keeps before, while the others say that they are ready.
	local.CopyRate = 1e9 / beta
	requireCost(t, 2*alpha+beta*bytes, scatter, local)
	local.CopyRate /= 10
	requireCost(t, 10*beta*bytes+alpha+beta*bytes, scatter, local)
	local.CopyRate, local.LocalAlone = 0, 2*local.LocalBandwidth
	requireCost(t, 2*alpha+beta*bytes/2, callOf(schedule.CollectiveScatter, schedule.Direct, 2, bytes), local)
	local.LocalAlone, local.CoresPerNode = 0, 2
	requireCost(t, 2*alpha+2*beta*bytes, scatter, local)
	// What others put to one they put at the same time anyway.
	requireCost(t, 2*alpha+2*beta*bytes, callOf(schedule.CollectiveGather, schedule.Direct, 4, bytes), local)
	// What is ready all the time is written.
	local.Slot = 4 * bytes
	requireCost(t, alpha+3*beta*bytes, scatter, local)
}

// calls are all algorithms of all collectives for so many ranks and about so many units.
func calls(size, units int) []schedule.Call {
	var all []schedule.Call
	for _, collective := range schedule.Collectives() {
		for _, algorithm := range schedule.Algorithms(collective) {
			for _, chunk := range []int{0, (units + 7) / 8} {
				call := callOf(collective, algorithm, size, units)
				call.Chunk = chunk
				switch collective {
				case schedule.CollectiveBarrier:
					call.Length = 0
				case schedule.CollectiveGather, schedule.CollectiveScatter, schedule.CollectiveAllgather,
					schedule.CollectiveReduceScatter, schedule.CollectiveAlltoall:
					call.Length = (units + size - 1) / size
				}
				all = append(all, call)
			}
		}
	}
	return all
}

// Nothing gets cheaper by more data, or by a network that is worse: not by more than chance.
func TestMonotonic(t *testing.T) {
	for _, size := range monotonicSizes {
		for _, units := range []int{1, 1 << 16} {
			for _, call := range calls(size, units) {
				network := cost.EFA()
				network.RanksPerNode = 4
				before, err := cost.Cost(call, 4, network)
				require.NoError(t, err)
				again, err := cost.Cost(call, 4, network)
				require.NoError(t, err)
				require.Equal(t, before, again)
				require.Positive(t, before)

				more := call
				more.Length *= 2
				took, err := cost.Cost(more, 4, network)
				require.NoError(t, err)
				require.GreaterOrEqual(t, took, before, "%+v, twice the length", call)
				for name, worse := range map[string]func(n *cost.Network){
					"latency":         func(n *cost.Network) { n.Latency *= 2 },
					"local latency":   func(n *cost.Network) { n.LocalLatency *= 100 },
					"overhead":        func(n *cost.Network) { n.Overhead *= 2 },
					"acknowledge":     func(n *cost.Network) { n.Acknowledge *= 2 },
					"bandwidth":       func(n *cost.Network) { n.Bandwidth /= 2 },
					"local bandwidth": func(n *cost.Network) { n.LocalBandwidth /= 2 },
					"reduce":          func(n *cost.Network) { n.ReduceRate /= 2 },
					"copy":            func(n *cost.Network) { n.CopyRate /= 2 },
					"call":            func(n *cost.Network) { n.Call *= 2 },
					"notice":          func(n *cost.Network) { n.Notice *= 2 },
				} {
					bad := network
					worse(&bad)
					took, err := cost.Cost(call, 4, bad)
					require.NoError(t, err)
					// What comes to a link or a core in another order may by chance fit better.
					require.Greater(t, took, before-before/100, "%+v, %s", call, name)
				}
			}
		}
	}
}

// The ranks of one node stand for all where all do the same.
func TestOneNodeStandsForAll(t *testing.T) {
	looked := map[string]int{}
	for _, perNode := range perNodes {
		if testing.Short() && perNode == 1 {
			continue // the longest: of more on a node, there are fewer nodes
		}
		efa := cost.EFA()
		efa.RanksPerNode = perNode
		link := efa
		link.LinksPerNode = 1
		core := efa
		core.CoresPerNode = 1
		restless := core
		restless.CoresPerNode, restless.Look, restless.Turn, restless.Jitter = 2, 1000, 500, 1
		slow := efa
		slow.ReduceRate, slow.CopyRate = 1e9, 1e9
		ready := efa
		ready.Slot = 1
		loud := efa
		loud.Telling = 1
		even := plain()
		even.RanksPerNode, even.LocalLatency, even.LocalBandwidth = perNode, 10, 1e10
		for name, network := range map[string]cost.Network{"efa": efa, "link": link, "core": core, "restless": restless, "slow": slow, "even": even, "ready": ready, "loud": loud} {
			for _, size := range []int{8, 24, 32} {
				for _, units := range []int{1, 1 << 20} {
					for _, call := range calls(size, units) {
						if call.Collective == schedule.CollectiveAllreduce && call.Algorithm != schedule.RecursiveDoubling {
							call.Length = (units + size - 1) / size * size
						}
						one, ok, err := cost.OneNode(call, 4, network)
						require.NoError(t, err)
						if !ok {
							continue
						}
						all, err := cost.Whole(call, 4, network)
						require.NoError(t, err)
						within := 1 + 1e-9*float64(all)
						if name == "link" && call.Collective == schedule.CollectiveAllreduce && call.Algorithm == schedule.Pairwise ||
							name == "core" && (call.Algorithm == schedule.Bruck || call.Algorithm == schedule.Pairwise) {
							within = 0.05 * float64(all)
						}
						if name == "restless" {
							within = 0.1 * float64(all) // what a core does next on one node, it may not on another
						}
						if call.Collective == schedule.CollectiveAllreduce && call.Algorithm == schedule.Direct {
							within += float64(network.Latency+network.Overhead) + 0.01*float64(all)
							if name == "core" || name == "restless" {
								within = 0.33 * float64(all)
							}
						}
						require.InDelta(t, float64(all), float64(one), within, "%s, %d on a node: %+v", name, perNode, call)
						looked[fmt.Sprint(call.Collective, " by ", call.Algorithm)]++
					}
				}
			}
		}
	}
	require.Len(t, looked, 13, "%v", looked)
	for which, times := range looked {
		require.GreaterOrEqual(t, times, 40, which)
	}
}

// Allreduce by each algorithm of as many ranks as the largest jobs have takes longer than
// that of few, and no less than it must.
func TestManyRanks(t *testing.T) {
	network := cost.EFA()
	const length = 1 << 18
	for _, algorithm := range schedule.Algorithms(schedule.CollectiveAllreduce) {
		few, err := cost.Cost(callOf(schedule.CollectiveAllreduce, algorithm, 64, length), 4, network)
		require.NoError(t, err)
		call := callOf(schedule.CollectiveAllreduce, algorithm, manyRanks, length)
		many, err := cost.Cost(call, 4, network)
		require.NoError(t, err)
		require.Greater(t, many, few, "%v", algorithm)
		// Where ranks have more than one link each, and puts take no time at all.
		bound, err := cost.LowerBound(call, 4, 0, 4*network.Bandwidth, network.ReduceRate)
		require.NoError(t, err)
		require.Greater(t, many, bound.Max(), "%v", algorithm)
		totals, err := call.Totals()
		require.NoError(t, err)
		require.GreaterOrEqual(t, many, time.Duration(totals.Rounds)*network.LocalLatency, "%v", algorithm)
	}
}

// No algorithm is better than the bound, where a rank puts and awaits one after the other.
func TestBoundsHold(t *testing.T) {
	network := cost.Network{Overhead: alpha, Receive: alpha, Bandwidth: 1e9 / beta, ReduceRate: 1e9 / gamma}
	for size := 1; size <= 33; size += sizeStep {
		for _, units := range []int{0, 1, 1000, 33 * 1000} {
			for _, call := range calls(size, units) {
				took, err := cost.Cost(call, 1, network)
				require.NoError(t, err)
				bound, err := cost.LowerBound(call, 1, alpha, network.Bandwidth, network.ReduceRate)
				require.NoError(t, err)
				require.GreaterOrEqual(t, took, bound.Max(), "%+v", call)
			}
		}
	}
}

// To wait for long takes a core no longer on paper than to wait for a moment: this one has a week of
// looks of a microsecond.
func TestLongWaits(t *testing.T) {
	call := schedule.Call{Collective: schedule.CollectiveAllgather, Size: 4, Length: 1 << 20}
	call.Algorithm = schedule.Direct
	network := cost.Network{LocalBandwidth: 5, LocalLatency: time.Microsecond, RanksPerNode: 4, CoresPerNode: 2, Look: time.Microsecond}
	took, err := cost.Cost(call, 1, network)
	require.NoError(t, err)
	require.InEpsilon(t, 3*float64(1<<20)/5, took.Seconds(), 0.01)
}

// What is put to a rank on the same core is copied, and what goes to another core is slower.
func TestRanksOfOneCore(t *testing.T) {
	call := schedule.Call{Collective: schedule.CollectiveBcast, Size: 4, Length: 1 << 20}
	call.Algorithm, call.Fanout, call.InPlace = schedule.Tree, 3, true
	network := cost.Network{LocalByCore: true, LocalBandwidth: 1e9, CopyRate: 4e9, RanksPerNode: 4, CoresPerNode: 2}
	for placed, want := range map[[4]int]float64{{0, 0, 1, 1}: 2.25, {0, 1, 0, 1}: 2.25, {0, 0, 0, 1}: 1.5, {0, 1, 1, 1}: 3} {
		network.Placed = placed[:]
		took, err := cost.Cost(call, 1, network)
		require.NoError(t, err)
		require.InEpsilon(t, want*float64(1<<20)/1e9, took.Seconds(), 0.01, "%v", placed)
	}
	network.Placed, network.CopyRate = []int{0, 0, 1, 1}, 0
	took, err := cost.Cost(call, 1, network)
	require.NoError(t, err)
	require.InEpsilon(t, 3*float64(1<<20)/1e9, took.Seconds(), 0.01, "copies that take no time say nothing")
}
