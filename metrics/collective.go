package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// byCollective is a count for each kind of call.
func byCollective(name, help string, of func(s *collective.CallStats) uint64) metric[collective.Stats] {
	return metric[collective.Stats]{
		name, help, prometheus.CounterValue,
		[]string{"collective"},
		func(s *collective.Stats, tell func(float64, ...string)) {
			for _, kind := range schedule.Collectives() {
				tell(float64(of(&s.Calls[kind])), kind.String())
			}
		},
	}
}

var collectiveMetrics = []metric[collective.Stats]{
	byCollective("weft_collective_calls_begun_total", "Collective calls of this rank that have begun. Those that are neither done nor failed are under way.",
		func(s *collective.CallStats) uint64 { return s.Begun }),
	byCollective("weft_collective_calls_done_total", "Collective calls of this rank that have ended well.",
		func(s *collective.CallStats) uint64 { return s.Done }),
	byCollective("weft_collective_calls_failed_total", "Collective calls of this rank that have failed; after the first, the communicator has no more.",
		func(s *collective.CallStats) uint64 { return s.Failed }),
	byCollective("weft_collective_input_bytes_total", "What this rank has given to the calls that have ended well.",
		func(s *collective.CallStats) uint64 { return s.InputBytes }),
	{
		"weft_collective_neighbours", "Other ranks whose caches are memory of this host that is mapped here, so that what is put there is copied.",
		prometheus.GaugeValue, nil,
		func(s *collective.Stats, tell func(float64, ...string)) { tell(float64(s.Neighbours)) },
	},
	{
		"weft_collective_crossed_bytes_total", "What this rank has put to other ranks of its host without the device, in calls too large for the cache: copied to memory that is mapped, or written to the other process.",
		prometheus.CounterValue, nil,
		func(s *collective.Stats, tell func(float64, ...string)) { tell(float64(s.CrossedBytes)) },
	},
}

// NewCollectiveCollector collects the counts of a communicator's collective calls
// (collective.StatsOf), with its name as the label communicator. Its messages are those of
// a reactor: give the communicator of the world to NewReactorCollector too.
func NewCollectiveCollector(name string, c *comm.Comm) prometheus.Collector {
	return newCollector(collectiveMetrics, prometheus.Labels{"communicator": name},
		func() collective.Stats { return collective.StatsOf(c) })
}
