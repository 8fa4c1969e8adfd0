package survey

import (
	"runtime"
	"time"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/collective/schedule/cost"
)

// estimate is what calls of two ranks say that all of them cost.
type estimate struct {
	network cost.Network
	// call is what each takes beside its puts, and ready the word of a rank that it has
	// memory for a long one. copyRate is that at which the caller is given what came.
	call, ready time.Duration
	copyRate    float64
}

// estimate takes the exchange of two ranks apart. What nothing says that was measured is how
// much of a put is the work of its two ranks: that is taken to be what a put takes where they
// follow each other, and the rest to be on its way.
func (s *survey) estimate(bytes, ranks int) (estimate, error) {
	first, p := s.report.Network[0], s.probed(bytes)
	empty := first.Empty.Median()
	put := max(first.Exchange.Median()-empty, 0.001)
	work := min(max(first.Stream.Median()-empty, 0), put/2)
	copyRate := rate(p.Bytes, p.Copy.Median())
	e := estimate{
		call: duration(empty), ready: duration(first.Message.Median()), copyRate: copyRate,
		network: cost.Network{
			LocalLatency: duration(put - 2*work), LocalOverhead: duration(work), LocalReceive: duration(work),
			// The provider that writes from process to process has the one that writes do it.
			LocalByCore: s.Provider == "shm",
			ReduceRate:  rate(p.Bytes, p.Combine.Median()), CopyRate: copyRate,
			RanksPerNode: 2, CoresPerNode: runtime.NumCPU(),
		},
	}
	// What the bytes take is what the exchange takes longer than without them.
	exchange, err := callOf(schedule.CollectiveAllgather, 2, p.Bytes)
	if err != nil {
		return e, err
	}
	exchange.Algorithm = schedule.Direct
	without, err := e.predict(exchange, p.Bytes)
	if err != nil {
		return e, err
	}
	e.network.LocalBandwidth = rate(p.Bytes, p.Exchange.Median()-without)
	e.network.RanksPerNode = ranks
	return e, nil
}

// cacheSlot is how long a call may be that has no memory of its own, as in package
// collective without a Config.
const cacheSlot = 32 * 4096 / 4

// predict is what a call takes, in microseconds.
func (e estimate) predict(call schedule.Call, bytes int) (float64, error) {
	took, err := cost.Cost(call, element, e.network)
	if err != nil {
		return 0, err
	}
	scratch, output := 0, bytes
	for rank := range call.Size {
		plan, err := call.Plan(rank)
		if err != nil {
			return 0, err
		}
		scratch = max(scratch, plan.Scratch*element)
	}
	switch call.Collective {
	case schedule.CollectiveGather, schedule.CollectiveAllgather, schedule.CollectiveAlltoall:
		output *= call.Size
	}
	if output+scratch > cacheSlot {
		took += e.ready
	}
	if e.copyRate > 0 {
		took += time.Duration(float64(output) / e.copyRate * float64(time.Second))
	}
	return (took + e.call).Seconds() * 1e6, nil
}

// predict is what the simulator says of a call by an algorithm.
func (s *survey) predict(r *Result, algorithm string) (float64, error) {
	kind, err := schedule.ParseCollective(r.Collective)
	if err != nil {
		return 0, err
	}
	call, err := callOf(kind, r.Ranks, r.Bytes)
	if err != nil {
		return 0, err
	}
	if call.Algorithm, err = schedule.ParseAlgorithm(algorithm); err != nil {
		return 0, err
	}
	e, err := s.estimate(r.Bytes, r.Ranks)
	if err != nil {
		return 0, err
	}
	return e.predict(call, r.Bytes)
}
