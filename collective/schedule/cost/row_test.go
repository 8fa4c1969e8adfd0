package cost_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/collective/schedule/cost"
)

func row(t *testing.T, network cost.Network, calls ...schedule.Call) [][]time.Duration {
	t.Helper()
	ends, err := cost.Row(calls, 1, network)
	require.NoError(t, err)
	require.Len(t, ends, len(calls))
	return ends
}

// A row of one call is that call, on every network: there is one model. That of many ranks, of
// which only a node is looked at, is held to that of all ranks by TestOneNodeStandsForAll.
func TestRowOfOne(t *testing.T) {
	efa := cost.EFA()
	crowd := efa
	crowd.CoresPerNode, crowd.Look, crowd.Turn = 2, 3*time.Microsecond, time.Microsecond
	slots := efa
	slots.Slot, slots.RanksPerNode = 100, 3
	loud := efa
	loud.Telling, loud.RanksPerNode = 4, 3
	bare := efa
	bare.Slot, bare.Handed, bare.Call, bare.Notice = 0, false, 0, 0
	for name, network := range map[string]cost.Network{"efa": efa, "crowd": crowd, "slots": slots, "loud": loud, "bare": bare} {
		for _, size := range []int{1, 2, 5, 8, 24} {
			for _, units := range []int{1, 1000, 1 << 20} {
				for _, call := range calls(size, units) {
					want, err := cost.Cost(call, 1, network)
					require.NoError(t, err)
					last := time.Duration(0)
					for _, end := range row(t, network, call)[0] {
						last = max(last, end)
					}
					require.Equal(t, want, last, "%s: %+v", name, call)
				}
			}
		}
	}
}

// Cost has what comes beside the plans, number by number: two ranks on two nodes.
func TestBesidePlans(t *testing.T) {
	const bytes = 100
	us := time.Microsecond
	bcast := callOf(schedule.CollectiveBcast, schedule.Tree, 2, bytes)
	bcast.InPlace = true
	requireCost(t, us, bcast, cost.Network{Call: us})
	// Where the two have one core, each takes a turn more.
	requireCost(t, us, bcast, cost.Network{Call: us, Turn: us, RanksPerNode: 2, CoresPerNode: 2})
	requireCost(t, 4*us, bcast, cost.Network{Call: us, Turn: us, RanksPerNode: 2, CoresPerNode: 1})
	// The result is copied to who gets one, and at the end.
	requireCost(t, 3*us+bytes, bcast, cost.Network{Latency: 3 * us, Handed: true, CopyRate: 1e9})
	// Who is put to says that it is ready, which is a put without data.
	large := cost.Network{Latency: alpha, Overhead: 2 * alpha, Receive: 4 * alpha, Slot: bytes - 1}
	requireCost(t, 14*alpha, bcast, large)
	large.Slot = bytes
	requireCost(t, 7*alpha, bcast, large)
	// A notice follows each put when that is known to be there.
	loud := cost.Network{Latency: alpha, Overhead: 2 * alpha, Receive: 4 * alpha, Acknowledge: 8 * alpha, Telling: 1}
	requireCost(t, 18*alpha, bcast, loud)
	loud.Telling = 2
	requireCost(t, 11*alpha, bcast, loud)
	requireCost(t, 11*us, bcast, cost.Network{RanksPerNode: 2, Telling: 1, Notice: us, LocalLatency: 2 * us, LocalOverhead: 2 * us, LocalReceive: 4 * us})
	// What a rank has combined itself is where the caller wants it, in a large call.
	reduce := callOf(schedule.CollectiveReduce, schedule.Binomial, 2, bytes)
	handed := cost.Network{Handed: true, CopyRate: 1e9, Slot: 2*bytes - 1}
	requireCost(t, 0, reduce, handed)
	handed.Slot = 2 * bytes
	requireCost(t, bytes, reduce, handed)
	// What others put is copied, unless it is long enough to be put where it belongs.
	direct := cost.Network{Handed: true, CopyRate: 1e9, Slot: bytes - 1}
	requireCost(t, bytes, bcast, direct)
	direct.Direct = bytes + 1
	requireCost(t, bytes, bcast, direct)
	direct.Direct = bytes
	requireCost(t, 0, bcast, direct)
	direct.Slot = bytes
	requireCost(t, bytes, bcast, direct)
	// A signal is a put without data.
	barrier := callOf(schedule.CollectiveBarrier, schedule.Dissemination, 2, 0)
	requireCost(t, 7*us, barrier, cost.Network{RanksPerNode: 2, Notice: time.Hour, LocalLatency: us, LocalOverhead: 2 * us, LocalReceive: 4 * us})
}

// Number by number, what there is beside the plans.
func TestRow(t *testing.T) {
	const bytes = 100
	bcast := callOf(schedule.CollectiveBcast, schedule.Tree, 2, bytes)
	bcast.InPlace = true
	barrier := callOf(schedule.CollectiveBarrier, schedule.Dissemination, 2, 0)
	us := time.Microsecond

	network := cost.Network{RanksPerNode: 2, Call: us}
	require.Equal(t, [][]time.Duration{{us, us}, {2 * us, 2 * us}}, row(t, network, bcast, bcast))
	// Two ranks on one core.
	network.CoresPerNode = 1
	require.Equal(t, []time.Duration{us, 2 * us}, row(t, network, bcast)[0])
	// The result is copied to who gets one.
	network = cost.Network{RanksPerNode: 2, Handed: true, CopyRate: 1e9}
	require.Equal(t, []time.Duration{0, bytes}, row(t, network, bcast)[0])
	// Both tell, and hear: no notice is needed, whatever number of times.
	network = cost.Network{RanksPerNode: 2, Notice: time.Hour, LocalOverhead: us, LocalReceive: us}
	require.Equal(t, []time.Duration{8 * us, 8 * us}, row(t, network, barrier, barrier, barrier, barrier)[3])
	// Rank 1 says that it is ready, and rank 0 hears that before it puts.
	network = cost.Network{RanksPerNode: 2, Notice: us, Slot: bytes - 1}
	require.Equal(t, []time.Duration{2 * us, 2 * us}, row(t, network, bcast)[0])
	network.Slot = bytes
	require.Equal(t, []time.Duration{0, 0}, row(t, network, bcast)[0])
	// Each third time it says that it is done, which rank 0 takes in two calls later.
	require.Equal(t, [][]time.Duration{{0, 0}, {0, 0}, {0, us}, {0, us}, {2 * us, 2 * us}}, row(t, network, bcast, bcast, bcast, bcast, bcast))
	// Where they write to each other's memory, that is a put, and so is that they are ready.
	mapped := network
	mapped.Mapped, mapped.LocalOverhead, mapped.LocalReceive = true, us, 3*us
	ends := row(t, mapped, bcast, bcast, bcast, bcast, bcast)
	require.Equal(t, ends[1][1]+3*us+us, ends[2][1])
	require.Equal(t, ends[2][1]+3*us+us, ends[4][0])
	mapped.Slot = bytes - 1
	require.Equal(t, []time.Duration{4*us + us, 4*us + us + 3*us}, row(t, mapped, bcast)[0])
	// What it puts to rank 0 meanwhile says so, too.
	require.Equal(t, []time.Duration{0, 0}, row(t, network, bcast, barrier, bcast, barrier, bcast)[4])
	// A core looks at each rank that waits: at the one that has put before the other begins.
	network = cost.Network{RanksPerNode: 2, CoresPerNode: 1, LocalLatency: us, Look: 10 * us}
	require.Equal(t, []time.Duration{10 * us, 10 * us}, row(t, network, bcast)[0])
	// It looks at three in the first round, of which the last one tells what the first waits for.
	network = cost.Network{RanksPerNode: 3, CoresPerNode: 1, Look: 10 * us}
	three := callOf(schedule.CollectiveBarrier, schedule.Dissemination, 3, 0)
	require.Equal(t, []time.Duration{30 * us, 30 * us, 30 * us}, row(t, network, three)[0])
	// Rank 0 keeps its core until it has put everything, and then rank 2 finds what is for it.
	// The other core looks at ranks 1 and 3 in turn, and then at rank 3 alone, until it is there.
	network = cost.Network{RanksPerNode: 4, CoresPerNode: 2, Look: 10 * us, LocalByCore: true, LocalBandwidth: 1e9 * bytes / 15e3}
	four := callOf(schedule.CollectiveBcast, schedule.Tree, 4, bytes)
	four.InPlace, four.Fanout = true, 3
	require.Equal(t, []time.Duration{45 * us, 20 * us, 45 * us, 50 * us}, row(t, network, four)[0])
}

func TestRowErrors(t *testing.T) {
	call := callOf(schedule.CollectiveBarrier, schedule.Dissemination, 2, 0)
	var argument *schedule.ArgumentError
	_, err := cost.Row(nil, 1, cost.Network{})
	require.ErrorAs(t, err, &argument)
	_, err = cost.Row(make([]schedule.Call, 16), 1, cost.Network{})
	require.ErrorAs(t, err, &argument)
	other := call
	other.Size = 3
	_, err = cost.Row([]schedule.Call{call, other}, 1, cost.Network{})
	require.EqualError(t, err, "schedule: size 3, want 2, as in the first call")
	_, err = cost.Row([]schedule.Call{call}, 0, cost.Network{})
	require.ErrorAs(t, err, &argument)
	var network *cost.NetworkError
	for _, bad := range []cost.Network{{Look: -1}, {Call: -1}, {Notice: -1}, {Slot: -1}, {Telling: -1}} {
		_, err = cost.Row([]schedule.Call{call}, 1, bad)
		require.ErrorAs(t, err, &network)
	}
}

// Ranks that take as long each time fall into step: whoever is looked at in an exchange of partners has what it
// waits for, and two rounds take no longer than one. Of real ones they do.
func TestJitter(t *testing.T) {
	const times = 14
	took := func(algorithm schedule.Algorithm, jitter float64) time.Duration {
		network := cost.Network{
			RanksPerNode: 4, CoresPerNode: 2, LocalOverhead: 120, LocalReceive: 120, LocalByCore: true, Mapped: true, Handed: true,
			Slot: 32 << 10, Call: 450, Turn: 1100, Look: 2000, Jitter: jitter,
		}
		calls := slices.Repeat([]schedule.Call{callOf(schedule.CollectiveAllgather, algorithm, 4, 2)}, times+1)
		ends, err := cost.Row(calls, 4, network)
		require.NoError(t, err)
		again, err := cost.Row(calls, 4, network)
		require.NoError(t, err)
		require.Equal(t, ends, again)
		return (ends[times][0] - ends[0][0]) / times
	}
	require.Less(t, took(schedule.RecursiveDoubling, 0), took(schedule.Direct, 0))
	require.Greater(t, took(schedule.RecursiveDoubling, 0.5), took(schedule.Direct, 0.5))
}
