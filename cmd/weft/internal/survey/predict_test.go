package survey

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/collective/schedule/cost"
	"github.com/weft-go/weft/internal/bench/job"
)

// What was put into a network comes out of what two ranks say of it.
func TestPredictions(t *testing.T) {
	same := func(v float64) Series { return Series{v, v, v, v, v} }
	network := []Probe{
		{Bytes: short, Message: same(2), Combine: same(0.01), Copy: same(0.01), Exchange: same(4), Barrier: same(3.5), Empty: same(0.5), Stream: same(1.5)},
		// Copied at 10 GB/s and put at 5: a copy of what it has, and one of what the other puts; two
		// notices that there is memory for that.
		{Bytes: 2e6, Message: same(402), Combine: same(400), Copy: same(200), Exchange: same(3.5 + 2*(0.5+200) + 2 + 400)},
	}
	s := &survey{Config: Config{Provider: "shm"}, report: &Report{Network: network}}
	around := &Surroundings{Ranks: 2, Network: network}
	predicted := func(r *Result, algorithm string) float64 {
		n, err := s.estimate(&Surroundings{Ranks: 2, Network: []Probe{network[0], *probed(network, r.Bytes)}}, kind{rooted: true})
		require.NoError(t, err)
		took, err := r.predict(n, algorithm)
		require.NoError(t, err)
		return took
	}
	require.InDelta(t, 3.5, predicted(&Result{Collective: "barrier", Ranks: 2}, "dissemination"), 0.01)
	require.InDelta(t, 4.5, predicted(&Result{Collective: "alltoall", Ranks: 2, Bytes: short}, "pairwise"), 0.01, "each copies its own before it puts")
	r := &Result{Collective: "allgather", Ranks: 2, Bytes: 2e6}
	require.InEpsilon(t, 806.5, predicted(r, "direct"), 0.005)
	// Among more ranks it is as two of them find it.
	e, err := s.estimate(&Surroundings{Ranks: 4, Network: network}, kind{rooted: true})
	require.NoError(t, err)
	require.InEpsilon(t, 5e9, e.LocalBandwidth, 0.01)
	require.Equal(t, 4, e.RanksPerNode)
	require.Zero(t, e.LocalAlone)
	require.InDelta(t, 500, e.Step.Nanoseconds(), 5, "an exchange copies its own while it waits, and then what it hands out")
	// One that puts alone is twice as fast: it takes 200 us, and what the call takes without data.
	s.Arena = true
	network[1].Put = same(200 + 5)
	e, err = s.estimate(around, kind{rooted: true})
	require.NoError(t, err)
	require.InEpsilon(t, 1e10, e.LocalAlone, 0.05)
	require.InEpsilon(t, 5e9, e.ReduceRate, 0.01)
	// What has just been put is combined four times slower than what was combined before.
	network[1].Reduce = same(2000)
	e, err = s.estimate(around, kind{rooted: true})
	require.NoError(t, err)
	reduced, err := (&Result{Collective: "reduce", Ranks: 2, Bytes: 2e6}).predict(e, "tree")
	require.NoError(t, err)
	require.InEpsilon(t, 2000, reduced, 0.01)
	require.InEpsilon(t, 1.25e9, e.ReduceRate, 0.25)
	require.InEpsilon(t, 5e9, e.ReduceTogether, 0.01, "by one on the same core")
	// But no faster.
	network[1].Reduce = same(300)
	e, err = s.estimate(around, kind{rooted: true})
	require.NoError(t, err)
	require.InEpsilon(t, 5e9, e.ReduceRate, 0.01)
	r.Weft = same(600)
	bounds, err := s.bounds(r)
	require.NoError(t, err)
	require.InDelta(t, 402, bounds[0], 0.01)
	require.Len(t, bounds, 5)
	_, err = r.predict(e, "binomial")
	require.Error(t, err)
	// Nothing that was measured may be too little.
	network[1].Exchange, network[0].Stream = same(1), same(0)
	require.Positive(t, predicted(r, "ring"))
}

// slowMemory is a network of two ranks: how fast one puts while the other does not and copies what it was given, and how
// many times slower it puts while the other does.
type slowMemory struct{ alone, given, slower float64 }

var slowMemories = map[string]slowMemory{
	"alike":                 {5e9, 5e9, 1},
	"reading is quick":      {5e9, 1e10, 1},
	"two are slow":          {5e9, 5e9, 2},
	"two are slow, of much": {1e9, 1e9, 1.5},
}

func (of slowMemory) network(s *survey) cost.Network {
	return cost.Network{
		LocalOverhead: 100, LocalReceive: 100, LocalByCore: true, Mapped: true, Handed: true,
		LocalAlone: of.alone, LocalGiven: of.given, LocalBandwidth: of.alone / of.slower, LocalDirect: of.alone / of.slower,
		CopyRate: 2e10, ReduceRate: 1e10, ReduceTogether: 2e10, RanksPerNode: 2, CoresPerNode: 2, Call: 200,
		Slot: cost.EFA().Slot, Telling: cost.EFA().Telling, Direct: cost.DirectMapped, DirectMoved: s.directMoved(),
	}
}

// foundBy is what two ranks of the network measure in five rounds that are the same.
func foundBy(t *testing.T, n cost.Network, bytes int, combines bool) *Surroundings {
	t.Helper()
	takes := func(kind schedule.Collective, by schedule.Algorithm, bytes int) Series {
		call, err := callOf(kind, by, 2, bytes, true)
		require.NoError(t, err)
		took, err := predict(n, call)
		require.NoError(t, err)
		return always(took)
	}
	around := &Surroundings{Ranks: 2, Combines: combines}
	for _, bytes := range []int{short, bytes} {
		e := exchangeFor(combines && bytes != short)
		around.Network = append(around.Network, Probe{
			Bytes: bytes, Message: always(1 + rated(bytes, n.LocalDirect)), Combine: always(rated(bytes, n.ReduceTogether)), Copy: always(rated(bytes, n.CopyRate)),
			Exchange: takes(e.kind, e.ways[0], bytes), Put: takes(schedule.CollectiveBcast, schedule.Tree, bytes),
			Reduce: takes(schedule.CollectiveReduce, schedule.Tree, bytes),
		})
	}
	around.Network[0].Barrier = takes(schedule.CollectiveBarrier, schedule.Dissemination, 0)
	around.Network[0].Empty, around.Network[0].Stream = always(0.2), always(0.3)
	return around
}

func always(v float64) Series { return Series{v, v, v, v, v} }

// What two ranks measure on a network says how that is, whatever of it is slow.
func TestNetworkIsFoundOut(t *testing.T) {
	const bytes = 1 << 20
	for name, of := range slowMemories {
		t.Run(name, func(t *testing.T) {
			s := &survey{Config: Config{Provider: "shm"}}
			around := foundBy(t, of.network(s), bytes, false)
			for _, rooted := range []bool{false, true} {
				e, err := s.estimate(around, kind{rooted: rooted})
				require.NoError(t, err)
				of.isFoundOut(t, e)
				if rooted {
					require.InEpsilon(t, 1e10, e.ReduceRate, 0.15, "as a Reduce takes it to be")
				}
			}
			// Calls in a row may be faster than that. They are predicted from the exchange then, and others are not.
			half := around.Network[1].Exchange.Median() / 2
			around.Network[1].Exchange = always(half)
			for _, algorithm := range []string{"ring", "direct"} {
				require.InEpsilon(t, half, foretold(t, s, around, "allgather", algorithm), 0.05, algorithm)
			}
			require.InEpsilon(t, around.Network[1].Put.Median(), foretold(t, s, around, "bcast", "tree"), 0.05)
			// Copying its own may have been disturbed, so that it seems to take more than all of the exchange.
			around.Network[1].Copy = always(2 * around.Network[1].Exchange.Median())
			e, err := s.estimate(around, kindOf("allgather", "ring"))
			require.NoError(t, err)
			require.Positive(t, e.LocalBandwidth, "or it takes no time")
			require.False(t, math.IsInf(e.LocalBandwidth, 0))
		})
	}
}

func (of slowMemory) isFoundOut(t *testing.T, e cost.Network) {
	t.Helper()
	require.InEpsilon(t, of.alone, e.LocalAlone, 0.03)
	require.InEpsilon(t, of.given, e.LocalGiven, 0.1)
	require.InEpsilon(t, of.alone/of.slower, e.LocalBandwidth, 0.03)
}

// foretold is what a call of two ranks takes as they found the network.
func foretold(t *testing.T, s *survey, around *Surroundings, collective, algorithm string) float64 {
	t.Helper()
	e, err := s.estimate(around, kindOf(collective, algorithm))
	require.NoError(t, err)
	r := &Result{Collective: collective, Ranks: 2, Bytes: around.Network[1].Bytes}
	took, err := r.predict(e, algorithm)
	require.NoError(t, err)
	return took
}

// So does what they combine of each other's, for calls that do that: what they copy of each other's may go another way.
func TestNetworkIsFoundOutByCombining(t *testing.T) {
	const bytes = 1 << 20
	for name, of := range slowMemories {
		t.Run(name, func(t *testing.T) {
			s := &survey{Config: Config{Provider: "shm"}}
			n := of.network(s)
			n.ReduceRate = combiningGiven(n, n.ReduceTogether)
			around := foundBy(t, n, bytes, true)
			for _, rooted := range []bool{false, true} {
				e, err := s.estimate(around, kind{rooted: rooted})
				require.NoError(t, err)
				of.isFoundOut(t, e)
				require.InEpsilon(t, n.ReduceRate, e.ReduceRate, 0.15)
			}
			for _, by := range []float64{1, 0.5, 2} {
				took := by * around.Network[1].Exchange.Median()
				other := *around
				other.Network = slices.Clone(around.Network)
				other.Network[1].Exchange = always(took)
				require.InEpsilon(t, took, foretold(t, s, &other, "reduce-scatter", "recursive-halving"), 0.05, by)
			}
		})
	}
}

// rated is what so many bytes take at a rate, in microseconds.
func rated(bytes int, rate float64) float64 { return float64(bytes) / rate * 1e6 }

// Each round is predicted from what was found out in it.
func TestPredictionsOfRounds(t *testing.T) {
	slower := Series{1, 2, 1, 3, 3}
	series := func(v float64) (all Series) {
		for _, by := range slower {
			all = append(all, v*by)
		}
		return all
	}
	s := &survey{Config: Config{Provider: "shm"}}
	r := &Result{
		Collective: "barrier", Ranks: 2, Weft: series(4), Algorithms: []Algorithm{{Name: "dissemination", Weft: series(4)}},
		around: &Surroundings{Ranks: 2, Network: []Probe{{
			Bytes: short, Message: series(2), Combine: series(0.01), Copy: series(0.01),
			Exchange: series(4), Put: series(2), Barrier: series(4), Empty: series(0.5), Stream: series(1.5),
		}}},
	}
	require.NoError(t, s.foretell(r))
	a := r.Algorithms[0]
	require.InDelta(t, 1, a.Ratio, 0.01)
	require.InDelta(t, 8, a.Predicted, 0.1)
	// One odd round says little, of whatever it is.
	r.around.Network[0].Barrier[0] = 100
	require.NoError(t, s.foretell(r))
	require.InDelta(t, 1, r.Algorithms[0].Ratio, 0.01)
	require.Equal(t, 5, len(r.around.Network[0].Barrier))
}

// Ranks that all move data are in each other's way. One that does while the others wait is not.
func TestCrowdedMemory(t *testing.T) {
	const bytes = 1 << 24
	ranks := max(2*runtime.NumCPU(), 4)
	var tree *Tree
	predicted := func(collective, algorithm string, exchange float64) float64 {
		r := &Result{
			Collective: collective, Ranks: ranks, Bytes: bytes, Weft: Series{1}, Algorithms: []Algorithm{{Name: algorithm, Weft: Series{1}}},
			around: &Surroundings{
				Ranks: ranks,
				Network: []Probe{
					{Bytes: short, Message: Series{1}, Exchange: Series{2}, Put: Series{1}, Barrier: Series{2}, Empty: Series{0.5}, Stream: Series{1}},
					{Bytes: bytes, Combine: Series{1}, Copy: Series{1}, Exchange: Series{8000}, Put: Series{4000}},
				},
				Crowd: &Crowd{
					Barrier: Series{10}, Short: Series{10},
					Exchange: &Exchange{Bytes: bytes, AtOnce: Series{exchange}, InTurn: Series{exchange}},
					Tree:     tree,
				},
			},
		}
		require.NoError(t, (&survey{Config: Config{Provider: "tcp"}}).foretell(r))
		return r.Algorithms[0].Predicted
	}
	const slow, slower = 300e3, 900e3 // microseconds
	require.InEpsilon(t, 3, predicted("allgather", "ring", slower)/predicted("allgather", "ring", slow), 0.1)
	require.InEpsilon(t, 3, predicted("scatter", "direct", slower)/predicted("scatter", "direct", slow), 0.1, "they fetch at the same time")
	// Along trees it is as a Reduce was, and a Bcast as one.
	for took := slow; took <= slower; took += slow {
		tree = &Tree{Collective: "bcast", Bytes: bytes, Took: Series{took}}
		require.InEpsilon(t, took, predicted("bcast", "tree", slow), 0.02)
		tree = &Tree{Collective: "reduce", Bytes: bytes, Took: Series{took}}
		require.InEpsilon(t, took, predicted("reduce", "tree", slow), 0.02)
		require.InEpsilon(t, 1, predicted("reduce", "binomial", slower)/predicted("reduce", "binomial", slow), 1e-6)
		require.InEpsilon(t, 1, predicted("allreduce", "reduce-bcast", slower)/predicted("allreduce", "reduce-bcast", slow), 1e-6)
		require.InEpsilon(t, 3, predicted("allreduce", "ring", slower)/predicted("allreduce", "ring", slow), 0.1)
	}
}

// What a call takes beside its rounds where ranks share cores is found out from calls of one round, and of two.
func TestTurns(t *testing.T) {
	first := Probe{Bytes: short, Message: Series{2}, Combine: Series{0.01}, Copy: Series{0.01}, Exchange: Series{0.5}, Barrier: Series{0.4}, Empty: Series{0.2}, Stream: Series{0.3}}
	s := &survey{Config: Config{Provider: "shm"}}
	for _, direct := range []float64{4, 4.5, 5} {
		n, err := s.estimate(&Surroundings{Ranks: 4, Network: []Probe{first}, Crowd: &Crowd{Barrier: Series{5}, Short: Series{5}, Direct: Series{direct}}}, kind{rooted: true})
		require.NoError(t, err)
		for algorithm, want := range map[schedule.Algorithm]float64{schedule.Direct: direct, schedule.Bruck: 5} {
			call, err := callOf(schedule.CollectiveAllgather, algorithm, 4, short, true)
			require.NoError(t, err)
			took, err := predict(n, call)
			require.NoError(t, err)
			require.InEpsilon(t, want, took, 0.1, "%v where a direct one takes %v", algorithm, direct)
		}
	}
}

// How much slower ranks are together is found out with as much memory as a call has.
func TestCrowdsHaveTheMemoryOfCalls(t *testing.T) {
	tcp, shm := &survey{Config: Config{Provider: "tcp"}}, &survey{Config: Config{Provider: "shm"}}
	require.Nil(t, tcp.newCrowd("bcast", 4, 0).Exchange)
	require.NotNil(t, shm.newCrowd("bcast", 4, uncached).Exchange)
	require.Nil(t, shm.newCrowd("bcast", 4, 4<<10).Exchange, "it is in the caches of each core")
	require.Nil(t, tcp.newCrowd("allgather", 4, short).Exchange)
	require.Equal(t, &Tree{Collective: "reduce", Bytes: 1 << 20}, shm.newCrowd("allreduce", 4, 1<<20).Tree, "as long as the call")
	require.Equal(t, &Tree{Collective: "bcast", Bytes: 1 << 20}, shm.newCrowd("bcast", 4, 1<<20).Tree)
	require.Nil(t, shm.newCrowd("reduce", 4, short).Tree)
	require.Nil(t, shm.newCrowd("alltoall", 4, 1<<20).Tree)
	for _, kind := range schedule.Collectives() {
		if kind == schedule.CollectiveBarrier {
			continue
		}
		for _, bytes := range []int{4 << 10, 1 << 20, 16 << 20} {
			for _, ranks := range []int{3, 4, 8} {
				e := tcp.newCrowd(kind.String(), ranks, bytes).Exchange
				exchange, uses := job.Case{Work: "allgather", Bytes: e.Bytes}, memoryOf(kind.String(), ranks, bytes)
				require.InEpsilon(t, uses, exchange.Memory(ranks), 0.01, "%v of %d bytes on %d ranks", kind, bytes, ranks)
				_, err := gathered.of(2, e.Bytes, true)
				require.NoError(t, err)
				// Two ranks have as much, where that makes a difference.
				require.Equal(t, bytes, tcp.pairBytes(kind.String(), ranks, bytes))
				exchange.Bytes = shm.pairBytes(kind.String(), ranks, bytes)
				switch {
				case exchange.Bytes >= cost.MostMapped/2:
					require.GreaterOrEqual(t, uses, exchange.Memory(2))
				case bytes >= uncached:
					require.InEpsilon(t, uses, exchange.Memory(2), 0.01, "%v of %d bytes on %d ranks", kind, bytes, ranks)
				case exchange.Bytes == uncached:
					require.Greater(t, uses, exchange.Memory(2))
				case exchange.Bytes > bytes:
					require.InEpsilon(t, uses, exchange.Memory(2), 0.01, "%v of %d bytes on %d ranks", kind, bytes, ranks)
				default:
					require.Equal(t, bytes, exchange.Bytes, "not less than what goes from one to another")
					require.LessOrEqual(t, uses, exchange.Memory(2))
				}
			}
		}
	}
	require.Equal(t, 4<<10, tcp.newCrowd("allgather", 8, 4<<10).Exchange.Bytes, "as it is one")
	require.Equal(t, short, shm.pairBytes("barrier", 4, 0))
	require.Equal(t, uncached, shm.pairBytes("alltoall", 8, 8<<20))
}

// The kernel moves long results on shm: an exchange is as long as one that it moves if the call is, and not otherwise.
func TestExchangesGoTheWayOfCalls(t *testing.T) {
	slow, quick := &survey{Config: Config{Provider: "shm"}}, &survey{Config: Config{Provider: "shm"}, quickKernel: true}
	for _, of := range []struct {
		s              *survey
		collective     string
		ranks, bytes   int
		pairs, crowded bool // their results are moved by the kernel
	}{
		{slow, "alltoall", 4, 16 << 20, false, false},
		{slow, "alltoall", 4, 17 << 20, true, true},
		{slow, "allgather", 2, 32 << 20, false, false},
		{slow, "bcast", 4, 256 << 20, true, true},
		{slow, "allreduce", 4, 512 << 20, false, false},
		{slow, "reduce-scatter", 3, 512 << 20, false, false},
		{quick, "alltoall", 2, 1 << 20, false, false},
		{quick, "alltoall", 2, 2 << 20, true, true},
		{quick, "gather", 4, 1 << 20, true, true},
		{quick, "bcast", 4, 4 << 20, true, true},
		{quick, "bcast", 4, 2 << 20, false, false},
	} {
		kernel := func(exchange, ranks int) bool { return exchange*ranks >= of.s.directMoved() }
		if e := of.s.pairBytes(of.collective, of.ranks, of.bytes); kernel(e, 2) != of.pairs || e%element != 0 {
			t.Errorf("quick %v: %s of %d bytes on %d ranks: two exchange %d", of.s.quickKernel, of.collective, of.bytes, of.ranks, e)
		}
		if e := of.s.newCrowd(of.collective, of.ranks, of.bytes).Exchange.Bytes; kernel(e, of.ranks) != of.crowded || e%element != 0 {
			t.Errorf("quick %v: %s of %d bytes on %d ranks: all exchange %d", of.s.quickKernel, of.collective, of.bytes, of.ranks, e)
		}
	}
}

// What is found out about the network is about memory of the kind that calls use.
func TestProbesHaveTheMemoryOfCalls(t *testing.T) {
	for _, arena := range []bool{false, true} {
		w := worksheet{arena: arena}
		w.addNetwork([]Probe{{Bytes: short}, {Bytes: 1 << 20}}, 4, true, false)
		w.addCrowd(&Crowd{Exchange: &Exchange{}, Tree: &Tree{}})
		require.NotEmpty(t, w.cases)
		for _, c := range w.cases {
			require.Equal(t, arena, c.Arena, "%v", c)
		}
	}
}

func TestPlacements(t *testing.T) {
	require.Equal(t, [][]int{nil}, placements(2, 2))
	require.ElementsMatch(t, [][]int{{0, 1, 0, 1}, {0, 0, 1, 1}, {0, 1, 1, 0}}, placements(4, 2), "all that there are")
	require.Equal(t, [][]int{{0, 0, 0}}, placements(3, 1))
	for _, way := range placements(17, 4) {
		require.Len(t, way, 17)
		on := make([]int, 4)
		for _, core := range way {
			on[core]++
		}
		require.ElementsMatch(t, []int{4, 4, 4, 5}, on)
	}
	require.Len(t, placements(17, 4), 6)
	require.Equal(t, placements(17, 4), placements(17, 4), "a prediction is the same each time")
}

// A prediction is not to be held to what was measured where that differs as much from itself.
func TestUnsteadyMeasurements(t *testing.T) {
	algorithm := func(ratio float64, weft ...float64) Algorithm {
		return Algorithm{Name: "ring", Weft: weft, Predicted: 1, Ratio: ratio}
	}
	r := &Report{Results: []*Result{{Algorithms: []Algorithm{
		algorithm(1, 10, 11, 12, 10, 11),
		algorithm(1.4, 10, 11, 30, 10, 11),
		algorithm(1, 10, 20, 10, 20, 10),
		algorithm(1.4, 20, 10, 20, 10, 10),
		algorithm(1, 10), // nothing says that it would be the same again
	}}}}
	require.Equal(t, &Predictions{Near: 3, All: 5, NearOthers: 3, Others: 5, NearSteady: 1, Steady: 2}, r.judge())
	var out strings.Builder
	require.NoError(t, r.printAlgorithms(&out))
	require.Equal(t, 3, strings.Count(out.String(), ", unsteady"), out.String())
	require.Contains(t, out.String(), "3 of 5 measurements are unsteady")
	require.Contains(t, out.String(), "1 of 2 predictions are")
}

// Predictions of what the simulator was told count apart.
func TestCalibratingCalls(t *testing.T) {
	cores := runtime.NumCPU()
	crowd := max(2*cores, 4)
	s := &survey{}
	for _, one := range []struct {
		collective, algorithm string
		ranks, bytes          int
		want                  bool
	}{
		{"barrier", "dissemination", 2, 0, true},
		{"barrier", "dissemination", crowd, 0, true},
		{"bcast", "tree", 2, 4096, true},
		{"bcast", "tree", crowd, 4096, false},
		{"bcast", "scatter-allgather", 2, 4096, false},
		{"allgather", "direct", 2, 8, true},
		{"allgather", "ring", 2, 4096, true},
		{"allgather", "direct", crowd, 4096, true},
		{"allgather", "bruck", crowd, 4096, true},
		{"allgather", "direct", crowd, 8, true},
		{"allgather", "bruck", crowd, 8, true},
		{"allgather", "ring", crowd, 4096, false},
		{"alltoall", "pairwise", 2, 4096, false},
	} {
		around := &Surroundings{Crowd: &Crowd{}}
		if one.bytes > short {
			around.Crowd.Exchange = &Exchange{Bytes: one.bytes, AtOnce: Series{1}, InTurn: Series{1}}
		}
		got := s.calibrates(&Result{Collective: one.collective, Ranks: one.ranks, Bytes: one.bytes, around: around}, one.algorithm)
		require.Equal(t, one.want, got, "%+v", one)
	}
	// As calibrates has it of two ranks.
	for _, a := range schedule.Algorithms(schedule.CollectiveAllgather) {
		for rank := range 2 {
			call := schedule.Call{Collective: schedule.CollectiveAllgather, Size: 2, Length: 5}
			call.Algorithm = a
			plan, err := call.Plan(rank)
			require.NoError(t, err)
			puts := 0
			for _, step := range plan.Steps {
				if step.Action == schedule.Put {
					puts += step.Dst.Length
				}
			}
			require.Equal(t, 5, puts, "%v", a)
		}
	}
}

// What a rank puts is cut as it is by the algorithm, and not by that of a call where nobody says how.
func TestCallOfAlgorithm(t *testing.T) {
	const bytes = 1 << 20
	for _, c := range []struct {
		collective schedule.Collective
		algorithm  schedule.Algorithm
		cut        bool
	}{
		{schedule.CollectiveAllreduce, schedule.Default, false},
		{schedule.CollectiveAllreduce, schedule.Ring, false},
		{schedule.CollectiveAllreduce, schedule.ReduceBcast, true},
		{schedule.CollectiveGather, schedule.Default, true},
		{schedule.CollectiveGather, schedule.Direct, true},
		{schedule.CollectiveGather, schedule.Binomial, false},
	} {
		call, err := callOf(c.collective, c.algorithm, 4, bytes, true)
		require.NoError(t, err)
		require.Equal(t, c.cut, call.Chunk > 0, "%v by %v", c.collective, c.algorithm)
		if c.algorithm != schedule.Default {
			require.Equal(t, c.algorithm, call.Algorithm)
		}
	}
}
