package cost

import (
	"fmt"
	"time"

	"github.com/weft-go/weft/collective/schedule"
)

// MaxElement is the largest element in bytes.
const MaxElement = 1 << 16

// Cost is how long a call takes whose units have element bytes, from when all ranks begin
// until the last has ended. It is the same each time.
//
// Algorithms by which each rank deals with each other one ([schedule.Ring],
// [schedule.Pairwise], [schedule.Direct] but for Gather and Scatter, and [schedule.Bruck] of
// Alltoall) treat all ranks alike. Of more than 256 ranks, which must then be a multiple of
// RanksPerNode, only those of one node are looked at, and the data of Allreduce are taken
// to be a multiple of the ranks in length: this is what keeps it within seconds for 16,384.
// That gives the same as to look at all of them, but to within 5 % for Pairwise of
// Allreduce where ranks share a link or a core and for Bruck where they share a core: there the
// first ranks, which have a little less to do, are in the way of others at other times. And
// but for a latency and 1 % in Direct of Allreduce, where ranks say in the order of the
// others that they are ready, and the first are told first; where they share a core, it may be
// a third less than with all of them.
//
// So do those by halves and doubles ([schedule.RecursiveDoubling],
// [schedule.RecursiveHalving], [schedule.Rabenseifner]) where the ranks, and those of a node,
// are a power of two, and the data can be halved as often as they are. Of these, too, the
// ranks of one node are looked at then, which gives the same as all of them.
//
// The errors are a *[NetworkError], and a *[schedule.ArgumentError] or
// *[schedule.AlgorithmError] if there is no such call.
func Cost(call schedule.Call, element int, network Network) (time.Duration, error) {
	network, err := network.withDefaults()
	if err != nil {
		return 0, err
	}
	if err := checkElement(element); err != nil {
		return 0, err
	}
	alike := likenessOf(call, network)
	if call.Size <= mostWhole || call.Size > schedule.MaxSize || alike == unlike {
		return reckon(call, element, network, 0, call.Size)
	}
	if node := network.RanksPerNode; call.Size%node != 0 {
		return 0, &schedule.ArgumentError{
			Name: "size", Value: call.Size,
			Want: fmt.Sprintf("up to %d, or a multiple of the %d ranks of a node", mostWhole, node),
		}
	}
	return reckonNode(call, element, network)
}

func checkElement(element int) error {
	if element < 1 || element > MaxElement {
		return &schedule.ArgumentError{Name: "element", Value: element, Want: fmt.Sprintf("1 to %d", MaxElement)}
	}
	return nil
}

// mostWhole is the most ranks that are all looked at where each has as many steps.
const mostWhole = 256

// algorithmOf is the algorithm of a call, also where it leaves it open.
func algorithmOf(call schedule.Call) schedule.Algorithm {
	if call.Algorithm == schedule.Default {
		for _, a := range schedule.Algorithms(call.Collective) {
			if call.Commutative || schedule.KeepsOrder(call.Collective, a) {
				return a
			}
		}
	}
	return call.Algorithm
}

// likeness is in which way all ranks of a call do the same.
type likeness uint8

const (
	unlike likeness = iota
	// turned: what rank 0 does with rank d, rank r does with rank r + d.
	turned
	// flipped: what rank 0 does with rank d, rank r does with the one whose number differs in
	// the bits of d.
	flipped
)

func likenessOf(call schedule.Call, network Network) likeness {
	algorithm := algorithmOf(call)
	switch algorithm {
	case schedule.Ring, schedule.Pairwise:
		return turned
	case schedule.Direct:
		if call.Collective == schedule.CollectiveAllreduce || call.Collective == schedule.CollectiveAllgather {
			return turned
		}
	case schedule.Bruck:
		if call.Collective == schedule.CollectiveAlltoall {
			return turned
		}
	case schedule.RecursiveDoubling, schedule.RecursiveHalving, schedule.Rabenseifner:
		node := network.RanksPerNode
		if call.Size&(call.Size-1) != 0 || node&(node-1) != 0 || node > call.Size {
			return unlike
		}
		if algorithm == schedule.Rabenseifner && call.Length%call.Size != 0 {
			return unlike
		}
		return flipped
	}
	return unlike
}

// reckonNode reckons with the ranks of one node. That is the one that takes the longest, as
// begins and ends are not quite the same everywhere: who combines in the order of the ranks
// has to wait for rank 0, which puts to the ranks behind it last, and who combines as they
// come has to add what the lower ranks have, if there are any.
func reckonNode(call schedule.Call, element int, network Network) (time.Duration, error) {
	alike := likenessOf(call, network)
	if alike == turned && call.Collective == schedule.CollectiveAllreduce && call.Length > 0 {
		// So that all blocks have the same length.
		most := schedule.MaxUnits / call.Size / call.Size * call.Size
		call.Length = min((call.Length-1)/call.Size*call.Size+call.Size, max(call.Length, most))
	}
	node := network.RanksPerNode
	firsts := []int{0, min(node, call.Size-node), call.Size - node}
	if alike == flipped || algorithmOf(call) == schedule.Ring {
		firsts = firsts[:1]
	}
	longest := time.Duration(0)
	for _, first := range firsts {
		took, err := reckon(call, element, network, first, node)
		if err != nil {
			return 0, err
		}
		longest = max(longest, took)
	}
	return longest, nil
}

// reckon carries out a call on so many of its ranks: all, or those of one node.
func reckon(call schedule.Call, element int, network Network, first, ranks int) (time.Duration, error) {
	if _, err := call.Plan(0); err != nil {
		return 0, err
	}
	r := newRun(call.Size, first, ranks, network)
	r.flipped = likenessOf(call, network) == flipped
	r.numbers = allNumbers
	if err := r.add(call, element, 0); err != nil {
		return 0, err
	}
	return r.finish(), nil
}
