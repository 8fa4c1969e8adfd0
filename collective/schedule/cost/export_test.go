package cost

import (
	"time"

	"github.com/weft-go/weft/collective/schedule"
)

// Whole reckons with all ranks, however many there are.
func Whole(call schedule.Call, element int, network Network) (time.Duration, error) {
	network, err := network.withDefaults()
	if err != nil {
		return 0, err
	}
	return reckon(call, element, network, 0, call.Size)
}

// OneNode reckons with the ranks of the first node alone, and says whether that stands for
// all.
func OneNode(call schedule.Call, element int, network Network) (time.Duration, bool, error) {
	network, err := network.withDefaults()
	if err != nil {
		return 0, false, err
	}
	if likenessOf(call, network) == unlike || call.Size%network.RanksPerNode != 0 {
		return 0, false, nil
	}
	took, err := reckonNode(call, element, network)
	return took, true, err
}
