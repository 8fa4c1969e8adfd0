package survey

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/collective/schedule/cost"
	"github.com/weft-go/weft/internal/bench"
)

// kind is of calls for which a network is estimated in one way.
type kind struct {
	// tree: all of the data go along one.
	tree bool
	// rooted: data go to ranks that wait, or from those. Ranks may leave such a call before all have begun it, so that each is
	// measured by itself.
	rooted bool
}

func kindOf(collective, algorithm string) kind {
	of := kind{tree: alongTree(collective, algorithm)}
	switch collective {
	case schedule.CollectiveBcast.String(), schedule.CollectiveReduce.String(), schedule.CollectiveGather.String(), schedule.CollectiveScatter.String():
		of.rooted = true
	}
	// In this one, too, one waits for the other.
	of.rooted = of.rooted || algorithm == schedule.ReduceBcast.String()
	return of
}

// estimate takes the barrier of two ranks apart, and what an exchange takes longer. What nothing
// says that was measured is how much of a put is the work of its two ranks: that is taken to be what
// a put takes where they follow each other, and the rest to be on its way. Where ranks share cores, what it takes to
// go on with one, and by how much data is slower, is what makes a barrier and an exchange of
// as many ranks take as long as they were measured to. How fast a rank moves data while the other
// does not is known from a Bcast, and how fast it combines what it was sent from a Reduce. tree says
// that the network is for calls along trees.
func (s *survey) estimate(around *Surroundings, of kind) (cost.Network, error) {
	network, ranks := around.Network, around.Ranks
	first, p := network[0], &network[len(network)-1]
	empty := first.Empty.Median()
	signal := max(first.Barrier.Median()-empty, 0.001)
	work := min(max(first.Stream.Median()-empty, 0), signal/2)
	usual := cost.EFA() // of package collective it says what is the same everywhere
	n := cost.Network{
		LocalLatency: duration(signal - 2*work), LocalOverhead: duration(work), LocalReceive: duration(work),
		// The provider that writes from process to process has the one that writes do it.
		LocalByCore: s.Provider == shm, Mapped: s.Provider == shm,
		ReduceRate: rate(p.Bytes, p.Combine.Median()), CopyRate: rate(p.Bytes, p.Copy.Median()),
		RanksPerNode: 2, CoresPerNode: runtime.NumCPU(), Jitter: jitter,
		Call: duration(empty), Slot: usual.Slot, Telling: usual.Telling, Handed: usual.Handed,
	}
	switch {
	case s.Arena:
		n.Direct, n.DirectMoved = cost.DirectInArena, cost.DirectInArena
	case n.Mapped:
		n.Direct, n.DirectMoved = cost.DirectMapped, s.directMoved()
	case s.Provider != "efa":
		n.Direct = cost.DirectAnywhere
	}
	// A notice is a message.
	n.Notice = duration((first.Message.Median() - n.LocalLatency.Seconds()*1e6) / 2)
	// In an exchange each also copies: into its own place, and what is handed to the caller.
	exchange, err := gathered.of(2, short, n.Mapped)
	if err != nil {
		return n, err
	}
	n, err = fit(n, exchange, first.Exchange.Median(), func(n *cost.Network, by float64) { n.Step = duration(by) })
	if err != nil {
		return n, err
	}
	// What the bytes take is what the exchange takes longer than without them.
	if exchange, err = exchangeFor(around.Combines).of(2, p.Bytes, n.Mapped); err != nil {
		return n, err
	}
	without, err := predict(n, exchange)
	if err != nil {
		return n, err
	}
	n.LocalBandwidth = rate(p.Bytes, p.Exchange.Median()-without)
	if n.LocalByCore && n.LocalBandwidth == 0 {
		// Something else made the copies slow. What ranks put takes no less for that.
		n.LocalBandwidth = rate(p.Bytes, p.Put.Median())
	}
	bcast, err := callOf(schedule.CollectiveBcast, schedule.Tree, 2, p.Bytes, n.Mapped)
	if err != nil {
		return n, err
	}
	if n.LocalByCore && n.LocalBandwidth > 0 && n.CopyRate > 0 && p.Put.Median() > 0 {
		if n, err = fitAlone(n, p, bcast, exchange); err != nil {
			return n, err
		}
	}
	combining := rate(p.Bytes, p.Combine.Median())
	if n.LocalAlone > 0 && p.Reduce.Median() > 0 {
		if n, err = fitCombining(n, p, combining, of.rooted); err != nil {
			return n, err
		}
	}
	if n.LocalAlone > 0 && !of.rooted {
		if n, err = fitExchange(n, p, combining, exchange); err != nil {
			return n, err
		}
	}
	if n.Mapped && !s.Arena {
		// As the kernel moves a message.
		n.LocalDirect = min(rate(p.Bytes, p.Message.Median()-first.Message.Median()), n.LocalBandwidth)
	}
	n.RanksPerNode = ranks
	crowd := around.Crowd
	if crowd == nil {
		return n, nil
	}
	rounds, err := callOf(schedule.CollectiveAllgather, schedule.Bruck, ranks, short, n.Mapped)
	if err != nil {
		return n, err
	}
	once := rounds
	once.Algorithm = schedule.Direct
	// What there is for each round, and for each call, follows from calls of several rounds and of one. Each
	// is found out with the other as it was last.
	for range 4 {
		if n, err = fit(n, rounds, crowd.rounds(), func(n *cost.Network, by float64) { n.Look = duration(by) }); err != nil {
			return n, err
		}
		if n, err = fit(n, once, crowd.Direct.Median(), func(n *cost.Network, by float64) { n.Turn = duration(by) }); err != nil {
			return n, err
		}
	}
	together, measured, err := crowd.together(ranks, of.tree, n.Mapped)
	if err != nil || measured == 0 {
		return n, err
	}
	// All of them together may have more data than the caches, and who moves it is in need of cores, too.
	before := n
	return fit(n, together, measured, func(n *cost.Network, by float64) {
		slower := leastSlower + by
		n.LocalAlone, n.LocalBandwidth, n.LocalDirect = before.LocalAlone/slower, before.LocalBandwidth/slower, before.LocalDirect/slower
		n.LocalGiven = before.LocalGiven / slower
		n.CopyRate, n.ReduceRate, n.ReduceTogether = before.CopyRate/slower, before.ReduceRate/slower, before.ReduceTogether/slower
	})
}

// jitter is a guess. With any from 0.25 to 1 barriers, and exchanges in which ranks are partners, of four ranks on
// two cores are predicted as well; without it, these were to take 0.7 to 0.8 of what they do.
const jitter = 0.5

// leastSlower is how many times slower data are moved by all ranks than by two at least: less may be
// in the caches of two that have as much.
const leastSlower = 0.25

// of is a call in which ranks put so many bytes to each other.
func (e exchange) of(ranks, bytes int, shm bool) (schedule.Call, error) {
	return callOf(e.kind, e.ways[0], ranks, bytes, shm)
}

// fitAlone finds out how fast a rank moves data while no other does, from a Bcast, and from an exchange how fast it
// copies or combines what it was given, and how much slower two are at the same time.
func fitAlone(n cost.Network, p *Probe, bcast, exchange schedule.Call) (cost.Network, error) {
	// To the memory of another no rank copies faster than to its own; but what a core has in its own cache it
	// copies a hundred times as fast, in what is short.
	most := n.CopyRate
	const times = 100
	with := together{combining: n.ReduceRate}
	var err error
	// Each follows from the other as it was last.
	const rounds, same = 20, 0.002
	for last, round := 0.0, 0; round < rounds; round++ {
		n, err = fit(n, bcast, p.Put.Median(), func(n *cost.Network, by float64) { with.set(n, most, most/(1+times*by)) })
		if err != nil {
			return n, err
		}
		alone := n.LocalAlone
		n, err = fit(n, exchange, p.Exchange.Median(), func(n *cost.Network, by float64) {
			with.of(times * by)
			with.set(n, most, alone)
		})
		if err != nil || math.Abs(alone-last) < same*alone {
			return n, err
		}
		last = alone
	}
	return n, nil
}

// together is what is else for two ranks that put to each other.
type together struct {
	// given is from where a rank copies what it was given as fast as what it has, which is 0, to as slowly as it puts, 1.
	given float64
	// slower is how many times slower each is than alone.
	slower float64
	// combining is how fast a rank combines what it has.
	combining float64
}

// of makes it worse by so much, from 0 on: first what is given is copied more slowly, and then all that they do is slower.
func (t *together) of(by float64) { t.given, t.slower = min(by, 1), max(by, 1) }

func (t *together) set(n *cost.Network, most, alone float64) {
	if t.slower == 0 {
		t.of(1)
	}
	n.LocalAlone, n.LocalBandwidth = alone, alone/t.slower
	n.LocalGiven = 1 / (t.given/alone + (1-t.given)/most)
	n.ReduceRate = combiningGiven(*n, t.combining)
}

// combiningGiven is how fast a rank combines what it was given: that takes as much longer as copying it does.
func combiningGiven(n cost.Network, alone float64) float64 {
	return 1 / (1/alone + max(1/n.LocalGiven-1/n.CopyRate, 0))
}

// fitExchange has two ranks that put to each other, call after call, be as fast as they were in an exchange if a Bcast
// makes them slower: what one does goes on while it waits for what it writes to be there, and in a Bcast the other waits.
func fitExchange(n cost.Network, p *Probe, combining float64, exchange schedule.Call) (cost.Network, error) {
	took, err := predict(n, exchange)
	if err != nil || took <= p.Exchange.Median() {
		return n, err
	}
	most := n.CopyRate
	const times = 100
	combines := exchange.Collective == combined.kind
	return fit(n, exchange, p.Exchange.Median(), func(n *cost.Network, by float64) {
		rate := most / (1 + times*by)
		n.LocalAlone, n.LocalBandwidth, n.LocalGiven = rate, rate, most
		if combines {
			n.ReduceRate = combining
		}
	})
}

// fitCombining finds out how fast a rank combines what another one has just put, which is in the caches of that one's
// core, or in none: from a Reduce, for calls that are measured by themselves, as that is, and for others from how fast it
// copies what it was given. If it is the same core, it is as fast as with data of its own.
func fitCombining(n cost.Network, p *Probe, alone float64, rooted bool) (cost.Network, error) {
	n.ReduceTogether = alone
	if !rooted {
		n.ReduceRate = combiningGiven(n, alone)
		return n, nil
	}
	reduce, err := callOf(schedule.CollectiveReduce, schedule.Tree, 2, p.Bytes, n.Mapped)
	if err != nil {
		return n, err
	}
	const times = 100
	return fit(n, reduce, p.Reduce.Median(), func(n *cost.Network, by float64) { n.ReduceRate = alone / (1 + times*by) })
}

// fit makes a network worse by so much that a call takes as long as it was measured to.
func fit(n cost.Network, call schedule.Call, measured float64, worse func(n *cost.Network, by float64)) (cost.Network, error) {
	low, high := 0.0, measured
	for range 32 {
		by := (low + high) / 2
		with := n
		worse(&with, by)
		took, err := predict(with, call)
		if err != nil {
			return n, err
		}
		if took < measured {
			low = by
		} else {
			high = by
		}
	}
	worse(&n, low)
	return n, nil
}

// calibrates says whether the network is estimated from calls like this one, so that a good
// prediction of it says little.
func (s *survey) calibrates(r *Result, algorithm string) bool {
	crowded := r.Ranks > runtime.NumCPU()
	switch r.Collective {
	case schedule.CollectiveBarrier.String():
		return r.Ranks == 2 || crowded
	case schedule.CollectiveBcast.String(), schedule.CollectiveReduce.String():
		return algorithm == schedule.Tree.String() && (r.Ranks == 2 || crowded && r.around.Crowd.Tree != nil)
	case schedule.CollectiveAllgather.String():
		// By whatever algorithm, two ranks put to each other what they have.
		return r.Ranks == 2 || crowded && gathered.has(algorithm) && (r.around.Crowd.exchanged() > 0 || r.Bytes == short)
	case schedule.CollectiveReduceScatter.String():
		return r.around.Combines && (r.Ranks == 2 || crowded && combined.has(algorithm) && r.around.Crowd.exchanged() > 0)
	}
	return false
}

func (e exchange) has(algorithm string) bool {
	return slices.ContainsFunc(e.ways[:], func(a schedule.Algorithm) bool { return a.String() == algorithm })
}

// rounds is what calls take in which all ranks wait in each of their rounds, a barrier and an
// exchange of little, in microseconds: the middle of the two, for who gets a core when differs.
func (c *Crowd) rounds() float64 { return math.Sqrt(c.Barrier.Median() * c.Short.Median()) }

// exchanged is what an exchange takes, in microseconds, or 0 if none was measured. How much of it is
// in a cache depends on whose data is wanted when: it is the middle of the two ways. c may be nil.
func (c *Crowd) exchanged() float64 {
	if c == nil || c.Exchange == nil {
		return 0
	}
	return math.Sqrt(c.Exchange.AtOnce.Median() * c.Exchange.InTurn.Median())
}

// together is a call in which all ranks move data, and how long it takes, or 0 if none was measured.
func (c *Crowd) together(ranks int, tree, shm bool) (call schedule.Call, measured float64, err error) {
	switch {
	case tree && c.Tree != nil:
		kind, err := schedule.ParseCollective(c.Tree.Collective)
		if err != nil {
			return call, 0, err
		}
		call, err = callOf(kind, schedule.Tree, ranks, c.Tree.Bytes, shm)
		return call, c.Tree.Took.Median(), err
	case c.Exchange != nil:
		call, err = exchangeFor(c.Exchange.Combines).of(ranks, c.Exchange.Bytes, shm)
		return call, c.exchanged(), err
	}
	return call, 0, nil
}

// placements are ways to have ranks share cores, which the system does as it likes: all of those
// by which each core has as many, if they are few, or some; nil where each rank has its own.
func placements(ranks, cores int) (ways [][]int) {
	const most = 6
	if ranks <= cores {
		return [][]int{nil}
	}
	// The first rank of a core has the least number of those that are not on one before.
	seen := map[string]bool{}
	shuffle := rand.New(rand.NewPCG(uint64(ranks), uint64(cores)))
	for range 20 * most {
		way, name := make([]int, ranks), map[int]int{}
		for i, at := range shuffle.Perm(ranks) {
			way[at] = i % cores
		}
		for i, core := range way {
			if _, has := name[core]; !has {
				name[core] = len(name)
			}
			way[i] = name[core]
		}
		if key := fmt.Sprint(way); !seen[key] && len(ways) < most {
			seen[key] = true
			ways = append(ways, way)
		}
	}
	return ways
}

// predict is what a call takes, in microseconds, on average of the ways to share cores.
func predict(n cost.Network, call schedule.Call) (float64, error) {
	sum, ways := 0.0, placements(n.RanksPerNode, n.CoresPerNode)
	for _, n.Placed = range ways {
		took, err := predictPlaced(n, call)
		if err != nil {
			return 0, err
		}
		sum += took
	}
	return sum / float64(len(ways)), nil
}

// predictPlaced is what a call takes, in microseconds, as package job measures it: in a row of the
// same, where rank 0 says how long that takes; or, where ranks may leave it before all have
// begun, each behind a barrier, and as long as the rank that is in it for the longest.
func predictPlaced(n cost.Network, call schedule.Call) (float64, error) {
	times := 4
	if n.RanksPerNode > n.CoresPerNode {
		times = 7 // by chance one takes longer than another
	}
	switch call.Collective {
	case schedule.CollectiveBcast, schedule.CollectiveReduce, schedule.CollectiveGather, schedule.CollectiveScatter:
	default:
		calls := make([]schedule.Call, times+1)
		for i := range calls {
			calls[i] = call
		}
		ends, err := cost.Row(calls, element, n)
		if err != nil {
			return 0, err
		}
		return (ends[times][0] - ends[0][0]).Seconds() * 1e6 / float64(times), nil
	}
	barrier, err := callOf(schedule.CollectiveBarrier, schedule.Dissemination, call.Size, 0, n.Mapped)
	if err != nil {
		return 0, err
	}
	var calls []schedule.Call
	for range times {
		calls = append(calls, barrier, call)
	}
	ends, err := cost.Row(calls, element, n)
	if err != nil {
		return 0, err
	}
	longest := time.Duration(0)
	for rank := range call.Size {
		took := time.Duration(0)
		for i := 2; i < len(calls); i += 2 {
			took += ends[i+1][rank] - ends[i][rank]
		}
		longest = max(longest, took/time.Duration(times-1))
	}
	return longest.Seconds() * 1e6, nil
}

// foretell has the simulator say what each algorithm takes, of each round from what the ranks
// found out in it: from one to the next a machine may be slower, and its cores farther apart.
func (s *survey) foretell(r *Result) error {
	algorithms := r.planned()
	predicted := make([]Series, len(algorithms))
	for round := range r.Weft {
		around := r.around.round(round)
		networks := make(map[kind]cost.Network)
		for i, a := range algorithms {
			of := kindOf(r.Collective, a.Name)
			n, known := networks[of]
			if !known {
				var err error
				if n, err = s.estimate(around, of); err != nil {
					return err
				}
				networks[of] = n
			}
			took, err := r.predict(n, a.Name)
			if err != nil {
				return err
			}
			predicted[i] = append(predicted[i], took)
		}
	}
	for i := range algorithms {
		a := &algorithms[i]
		a.Predicted, a.Ratio = predicted[i].Median(), Series(bench.Ratios(predicted[i], a.Weft)).Median()
		a.Calibrating = s.calibrates(r, a.Name)
	}
	return nil
}

// predict is what the simulator says of a call by an algorithm.
func (r *Result) predict(n cost.Network, algorithm string) (float64, error) {
	kind, err := schedule.ParseCollective(r.Collective)
	if err != nil {
		return 0, err
	}
	by, err := schedule.ParseAlgorithm(algorithm)
	if err != nil {
		return 0, err
	}
	call, err := callOf(kind, by, r.Ranks, r.Bytes, n.Mapped)
	if err != nil {
		return 0, err
	}
	return predict(n, call)
}
