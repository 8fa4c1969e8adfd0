package cost

import (
	"fmt"
	"time"

	"github.com/weft-go/weft/collective/schedule"
)

const (
	// mostCalls is how many calls there may be in a row, and mostNumbers how many numbers each
	// has for what goes from one rank to another.
	mostCalls   = 15
	mostNumbers = 1 << 16
	// allNumbers is how many there are altogether, which a call on its own may have.
	allNumbers = 1 << 20
)

// Row is when each rank, by its number, has ended each of some calls that all ranks make one
// after the other. All ranks are looked at, so many of them take long. Row of one call is as
// long as [Cost] of it.
//
// The errors are those of [Cost].
func Row(calls []schedule.Call, element int, network Network) ([][]time.Duration, error) {
	network, err := network.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := checkElement(element); err != nil {
		return nil, err
	}
	if len(calls) == 0 || len(calls) > mostCalls {
		return nil, &schedule.ArgumentError{Name: "number of calls", Value: len(calls), Want: fmt.Sprintf("1 to %d", mostCalls)}
	}
	size := calls[0].Size
	if _, err := calls[0].Plan(0); err != nil {
		return nil, err
	}
	r := newRun(size, 0, size, network)
	r.numbers, r.said = mostNumbers, map[between]int{}
	for nth, call := range calls {
		if call.Size != size {
			return nil, &schedule.ArgumentError{Name: "size", Value: call.Size, Want: fmt.Sprintf("%d, as in the first call", size)}
		}
		if err := r.add(call, element, nth); err != nil {
			return nil, err
		}
	}
	r.finish()
	ends := make([][]time.Duration, len(calls))
	for nth := range calls {
		ends[nth] = make([]time.Duration, size)
		for i := range r.ranks {
			ends[nth][i] = duration(r.ranks[i].ends[nth])
		}
	}
	return ends, nil
}
