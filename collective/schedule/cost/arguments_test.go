package cost_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/collective/schedule/cost"
)

func TestErrors(t *testing.T) {
	good := callOf(schedule.CollectiveAllreduce, schedule.Ring, 8, 100)
	for name, test := range map[string]struct {
		network cost.Network
		want    string
	}{
		"latency":     {cost.Network{Latency: -1}, "cost: Network.Latency -1e-09, want 0 to an hour"},
		"acknowledge": {cost.Network{Acknowledge: 2 * time.Hour}, "cost: Network.Acknowledge 7200, want 0 to an hour"},
		"bandwidth":   {cost.Network{Bandwidth: -1}, "cost: Network.Bandwidth -1, want at least 1 byte per second, or 0 for no time at all"},
		"slow":        {cost.Network{ReduceRate: 0.1}, "cost: Network.ReduceRate 0.1, want at least 1 byte per second, or 0 for no time at all"},
		"jitter":      {cost.Network{Jitter: 1.5}, "cost: Network.Jitter 1.5, want 0 to 1"},
		"no jitter":   {cost.Network{Jitter: math.NaN()}, "cost: Network.Jitter NaN, want 0 to 1"},
		"together":    {cost.Network{ReduceTogether: -1}, "cost: Network.ReduceTogether -1, want at least 1 byte per second, or 0 for no difference"},
		"direct":      {cost.Network{LocalDirect: -1}, "cost: Network.LocalDirect -1, want at least 1 byte per second, or 0 for no difference"},
		"moved":       {cost.Network{DirectMoved: -1}, "cost: Network.DirectMoved -1, want at least 0"},
		"given":       {cost.Network{LocalGiven: 0.5}, "cost: Network.LocalGiven 0.5, want at least 1 byte per second, or 0 for no difference"},
		"alone":       {cost.Network{LocalAlone: 0.5}, "cost: Network.LocalAlone 0.5, want at least 1 byte per second, or 0 for no difference"},
		"no number":   {cost.Network{CopyRate: math.NaN()}, "cost: Network.CopyRate NaN, want at least 1 byte per second, or 0 for no time at all"},
		"ranks":       {cost.Network{RanksPerNode: -1}, "cost: Network.RanksPerNode -1, want 0 to 65536"},
		"links":       {cost.Network{LinksPerNode: 1 << 20}, "cost: Network.LinksPerNode 1.048576e+06, want 0 to 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cost.Cost(good, 4, test.network)
			var network *cost.NetworkError
			require.ErrorAs(t, err, &network)
			require.EqualError(t, err, test.want)
		})
	}
	var argument *schedule.ArgumentError
	var algorithm *schedule.AlgorithmError
	for _, element := range []int{0, -1, cost.MaxElement + 1} {
		_, err := cost.Cost(good, element, cost.EFA())
		require.ErrorAs(t, err, &argument)
		require.Equal(t, schedule.ArgumentError{Name: "element", Value: element, Want: "1 to 65536"}, *argument)
		_, err = cost.LowerBound(good, element, 0, 0, 0)
		require.ErrorAs(t, err, &argument)
	}
	_, err := cost.LowerBound(good, 1, 0, -1, 0)
	require.EqualError(t, err, "cost: Network.Bandwidth -1, want at least 1 byte per second, or 0 for no time at all")

	bad := good
	bad.Size = 300
	_, err = cost.Cost(bad, 4, cost.EFA())
	require.EqualError(t, err, "schedule: size 300, want up to 256, or a multiple of the 8 ranks of a node")
	bad.Size = 304
	_, err = cost.Cost(bad, 4, cost.EFA())
	require.NoError(t, err)
	for _, size := range []int{0, -1, math.MaxInt, schedule.MaxSize + 1} {
		bad.Size = size
		_, err = cost.Cost(bad, 4, cost.EFA())
		require.ErrorAs(t, err, &argument)
		require.Equal(t, "size", argument.Name)
		_, err = cost.LowerBound(bad, 4, 0, 0, 0)
		require.ErrorAs(t, err, &argument)
	}
	bad = good
	bad.Commutative = false
	_, err = cost.Cost(bad, 4, cost.EFA())
	require.ErrorAs(t, err, &algorithm)
	bad.Size = 1024
	_, err = cost.Cost(bad, 4, cost.EFA())
	require.ErrorAs(t, err, &algorithm)
}

// Without an algorithm it is the one that the plans have.
func TestDefaultAlgorithm(t *testing.T) {
	for _, collective := range schedule.Collectives() {
		for _, size := range []int{4, 512} {
			call := schedule.Call{Collective: collective, Size: size}
			if collective != schedule.CollectiveBarrier {
				call.Length = 3
			}
			open, err := cost.Cost(call, 4, cost.EFA())
			require.NoError(t, err)
			for _, algorithm := range schedule.Algorithms(collective) {
				if schedule.KeepsOrder(collective, algorithm) {
					call.Algorithm = algorithm
					break
				}
			}
			named, err := cost.Cost(call, 4, cost.EFA())
			require.NoError(t, err)
			require.Equal(t, named, open, "%v of %d", collective, size)
		}
	}
}

// What is longer than a Duration is the longest there is.
func TestForEver(t *testing.T) {
	call := callOf(schedule.CollectiveBcast, schedule.Tree, 2, schedule.MaxUnits/2)
	took, err := cost.Cost(call, cost.MaxElement, cost.Network{Bandwidth: 1})
	require.NoError(t, err)
	require.Equal(t, time.Duration(math.MaxInt64), took)
	bound, err := cost.LowerBound(call, cost.MaxElement, time.Second, 1, 1)
	require.NoError(t, err)
	require.Equal(t, time.Duration(math.MaxInt64), bound.Max())
}

// The bounds are those of the textbook.
func TestBounds(t *testing.T) {
	const size, length, element = 5, 100, 8
	const bytes = length * element
	for collective, want := range map[schedule.Collective]cost.Bound{
		schedule.CollectiveBarrier:       {Latency: 3 * alpha},
		schedule.CollectiveBcast:         {Latency: 3 * alpha, Bandwidth: bytes * beta},
		schedule.CollectiveReduce:        {Latency: 3 * alpha, Bandwidth: bytes * beta, Compute: bytes * 4 / 5 * gamma},
		schedule.CollectiveAllreduce:     {Latency: 3 * alpha, Bandwidth: 2 * bytes * 4 / 5 * beta, Compute: bytes * 4 / 5 * gamma},
		schedule.CollectiveGather:        {Latency: 3 * alpha, Bandwidth: 4 * bytes * beta},
		schedule.CollectiveScatter:       {Latency: 3 * alpha, Bandwidth: 4 * bytes * beta},
		schedule.CollectiveAllgather:     {Latency: 3 * alpha, Bandwidth: 4 * bytes * beta},
		schedule.CollectiveReduceScatter: {Latency: 3 * alpha, Bandwidth: 4 * bytes * beta, Compute: 4 * bytes * gamma},
		schedule.CollectiveAlltoall:      {Latency: 3 * alpha, Bandwidth: 4 * bytes * beta},
	} {
		call := schedule.Call{Collective: collective, Size: size, Length: length}
		if collective == schedule.CollectiveBarrier {
			call.Length = 0
		}
		got, err := cost.LowerBound(call, element, alpha, 1e9/beta, 1e9/gamma)
		require.NoError(t, err)
		require.Equal(t, want, got, "%v", collective)
		require.Equal(t, want.Latency+want.Bandwidth+want.Compute, got.Sum())
		require.Equal(t, max(want.Latency, want.Bandwidth, want.Compute), got.Max())
		call.Size = 1
		got, err = cost.LowerBound(call, element, alpha, 1e9/beta, 1e9/gamma)
		require.NoError(t, err)
		require.Zero(t, got, "%v of one rank", collective)
	}
}
