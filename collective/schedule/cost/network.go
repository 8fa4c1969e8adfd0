package cost

import (
	"fmt"
	"math"
	"time"
)

// Network is what a call costs where. All durations may be 0, and so may all rates, which
// then take no time.
type Network struct {
	// Latency is from where a put leaves one node to where it comes to another.
	Latency time.Duration
	// Overhead is what a rank does to begin a put or a signal, and Receive what it does
	// when it has awaited one.
	Overhead, Receive time.Duration
	// Acknowledge is from when a put is at another node until its rank knows. Whoever
	// settles waits for it, and so does the end of the call.
	Acknowledge time.Duration
	// Bandwidth is that of one link in one direction, in bytes per second.
	Bandwidth float64

	// Those of Local are for puts between ranks of one node, which are known to be there
	// at once. LocalBandwidth is that of one rank in one direction.
	LocalLatency, LocalOverhead, LocalReceive time.Duration
	LocalBandwidth                            float64
	// LocalAlone is what counts with LocalByCore in the place of LocalBandwidth while no other
	// rank of the node moves data, copies or combines: at the same time as another, a rank does each of these as
	// many times slower, or faster. Where Mapped, what others have put is copied no faster, either. 0 means that there is no difference.
	LocalAlone float64
	// LocalGiven is what counts with LocalAlone, where Mapped, for what others have put: to read what another core
	// has written may be faster than to write to it. 0 is for no difference.
	LocalGiven float64
	// LocalByCore says that the rank that puts within a node moves the data itself, and
	// does nothing else meanwhile, as in shared memory. What it puts to a rank on the same core does
	// not leave the caches: that takes no longer than a copy by CopyRate.
	LocalByCore bool

	// ReduceRate is how many bytes of a result a rank combines in a second, and CopyRate
	// how many it copies. ReduceTogether counts in the place of ReduceRate for what a rank on the same
	// core has put, which is in the caches of that one; 0 is for no difference.
	ReduceRate, CopyRate float64
	ReduceTogether       float64

	// Step is what a rank does to copy or to combine beside what the bytes take.
	Step time.Duration

	// RanksPerNode is how many neighbouring ranks share a node; 0 means 1.
	RanksPerNode int
	// LinksPerNode is how many links they share, evenly: where there are more links than
	// ranks, a put is spread over all of its rank's. 0 means a link for each rank.
	LinksPerNode int
	// CoresPerNode is how many of them can do something at once: begin puts, combine,
	// copy. 0 means all.
	CoresPerNode int
	// Placed is which core each rank of a node is on, by numbers below CoresPerNode; nil is in
	// turn.
	Placed []int
	// Look is what it takes a core to look at a rank that waits, and to go on to the next, where
	// ranks share cores: each keeps its ranks, which run in turn until they have to wait.
	Look time.Duration
	// Turn is what each call takes a rank beside Call and Look, where ranks share cores: who has all that a call
	// waits for goes on to the next one, which others have not begun.
	Turn time.Duration
	// Jitter is by what part of it a Look differs from another, and so does a Call with its Turn, where ranks share
	// cores: up to so much more or less, at random, and the same in each run. Ranks that take as long each
	// time fall into step, so that whoever is looked at has all that it waits for. It is 0 to 1.
	Jitter float64

	// Call is what a rank does for each call beside what its plan says.
	Call time.Duration
	// Notice is what a rank does to tell another of its node something beside the plan, and what
	// that does to take it in. To another node it is a put without data.
	Notice time.Duration
	// Mapped says that the ranks of a node write to each other's memory: that a call is done, or that
	// they are ready for one, they tell each other as they put, without a Notice.
	Mapped bool
	// LocalDirect is LocalBandwidth where Mapped and LocalByCore, for what is put where the caller wants
	// it: by the kernel. 0 is for no difference.
	LocalDirect float64
	// Slot is how many bytes of a call, of its Output and Scratch together, ranks have ready
	// for each other all the time. Whoever is put to in a longer one says that it is ready,
	// before. 0 is any number.
	Slot int
	// Telling is up to how many ranks in a call a put itself tells its peer that it is there.
	// Among more, a notice follows it when its rank knows so. 0 is any number.
	Telling int
	// Handed says that ranks copy the result to the caller at the end. In a call that is longer than
	// Slot, what they have combined is there already, and what others put there for good they
	// copy as it comes. Of such a call, a result of Direct
	// bytes or more is put where the caller wants it; 0 is for none. Where Mapped and LocalByCore, it
	// is one of DirectMoved bytes or more, if nobody combines it: but in an Allreduce. Of a Bcast or Scatter the
	// rank that is put to moves the data then, when it waits for them.
	Handed      bool
	Direct      int
	DirectMoved int
}

// Direct is so much where package collective does the calls: of results that are in a
// fabric.Arena, and of all where the device can do with any memory, as sockets and tcp can, and
// shm, where less is copied to memory that is mapped. DirectMoved is DirectInArena there, or above
// MostMapped; or DirectMapped, where the kernel copies long results quicker than these are copied twice.
const (
	DirectInArena  = 16 << 10
	DirectAnywhere = 64 << 10
	DirectMapped   = 2<<20 + 1
	MostMapped     = 64 << 20
)

// NetworkError is about a Network that cannot be.
type NetworkError struct {
	Field string
	Value float64
	Want  string // what would be right
}

func (e *NetworkError) Error() string {
	return fmt.Sprintf("cost: Network.%s %v, want %s", e.Field, e.Value, e.Want)
}

// EFA is the network of EC2 instances such as p5.48xlarge, with a rank for each of the 8
// GPUs, for data in the memory of the host. These are assumptions: nothing of this was
// measured on such instances for this package.
//
//   - Links: 32 network cards of 100 Gb/s, from "Maximize network bandwidth on Amazon EC2
//     instances with multiple network cards" in the EC2 user guide.
//   - Overhead: 1.5 us, the time from one 64-byte message to the next on one endpoint in
//     github.com/ofiwg/libfabric/issues/5694, on c5n.18xlarge.
//   - Receive: 0.5 us, a guess.
//   - Latency: what is then left of 15 us for a short message from rank to rank through
//     the device, in github.com/aws/aws-parallelcluster/issues/1143, on c5n.18xlarge. The
//     later device may be faster. Acknowledge is taken to be the same way back.
//   - Within the node: 0.26 us for a short message, of which parts for the ranks are a guess,
//     and 64 KiB in 4.9 us, through shared memory in github.com/ofiwg/libfabric/pull/8582,
//     on c5n.18xlarge.
//   - ReduceRate and CopyRate: 8 GB/s, a guess for one core.
//   - Slot and Telling: what package collective has without a Config; a test there says so.
//     Handed, and no Direct: as it is where results are not in a fabric.Arena.
//   - Call: 1.3 us, what package collective and those below it had of the 1.85 us of an
//     Allreduce of 8 bytes on two ranks, and Notice: 0.5 us, half of the 1.03 us of a message
//     from rank to rank, both over shm on machines with two cores, in docs/PERFORMANCE.md (P9
//     and P8).
func EFA() Network {
	return Network{
		Latency:        13000 * time.Nanosecond,
		Overhead:       1500 * time.Nanosecond,
		Receive:        500 * time.Nanosecond,
		Acknowledge:    13000 * time.Nanosecond,
		Bandwidth:      100e9 / 8,
		LocalLatency:   100 * time.Nanosecond,
		LocalOverhead:  80 * time.Nanosecond,
		LocalReceive:   80 * time.Nanosecond,
		LocalBandwidth: 14e9,
		LocalByCore:    true,
		ReduceRate:     8e9,
		CopyRate:       8e9,
		RanksPerNode:   8,
		LinksPerNode:   32,
		Call:           1300 * time.Nanosecond,
		Notice:         500 * time.Nanosecond,
		Slot:           32 << 10,
		Telling:        4096,
		Handed:         true,
	}
}

// maxPerNode bounds what a node has of anything.
const maxPerNode = 1 << 16

// Check says what is wrong with a network. The error is a *[NetworkError].
func (n Network) Check() error {
	_, err := n.withDefaults()
	return err
}

func (n Network) withDefaults() (Network, error) {
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"Latency", n.Latency},
		{"Overhead", n.Overhead},
		{"Receive", n.Receive},
		{"Acknowledge", n.Acknowledge},
		{"LocalLatency", n.LocalLatency},
		{"LocalOverhead", n.LocalOverhead},
		{"LocalReceive", n.LocalReceive},
		{"Step", n.Step},
		{"Look", n.Look},
		{"Turn", n.Turn},
		{"Call", n.Call},
		{"Notice", n.Notice},
	} {
		if d.value < 0 || d.value > time.Hour {
			return n, &NetworkError{d.field, d.value.Seconds(), "0 to an hour"}
		}
	}
	for _, rate := range []struct {
		field string
		value *float64
	}{
		{"Bandwidth", &n.Bandwidth},
		{"LocalBandwidth", &n.LocalBandwidth},
		{"ReduceRate", &n.ReduceRate},
		{"CopyRate", &n.CopyRate},
	} {
		switch {
		case *rate.value == 0:
			*rate.value = math.Inf(1)
		case !(*rate.value >= 1):
			return n, &NetworkError{rate.field, *rate.value, "at least 1 byte per second, or 0 for no time at all"}
		}
	}
	for _, other := range []struct {
		field string
		value float64
	}{{"LocalAlone", n.LocalAlone}, {"LocalGiven", n.LocalGiven}, {"LocalDirect", n.LocalDirect}, {"ReduceTogether", n.ReduceTogether}} {
		if other.value != 0 && !(other.value >= 1) {
			return n, &NetworkError{other.field, other.value, "at least 1 byte per second, or 0 for no difference"}
		}
	}
	for _, count := range []struct {
		field string
		value int
	}{
		{"RanksPerNode", n.RanksPerNode},
		{"LinksPerNode", n.LinksPerNode},
		{"CoresPerNode", n.CoresPerNode},
	} {
		if count.value < 0 || count.value > maxPerNode {
			return n, &NetworkError{count.field, float64(count.value), fmt.Sprintf("0 to %d", maxPerNode)}
		}
	}
	if !(n.Jitter >= 0 && n.Jitter <= 1) {
		return n, &NetworkError{"Jitter", n.Jitter, "0 to 1"}
	}
	if n.Placed != nil && len(n.Placed) != max(n.RanksPerNode, 1) {
		return n, &NetworkError{"Placed", float64(len(n.Placed)), "as many as RanksPerNode"}
	}
	for _, core := range n.Placed {
		if core < 0 || core >= n.CoresPerNode {
			return n, &NetworkError{"Placed", float64(core), "0 and more, below CoresPerNode"}
		}
	}
	for _, size := range []struct {
		field string
		value int
	}{{"Slot", n.Slot}, {"Direct", n.Direct}, {"DirectMoved", n.DirectMoved}, {"Telling", n.Telling}} {
		if size.value < 0 {
			return n, &NetworkError{size.field, float64(size.value), "at least 0"}
		}
	}
	if n.RanksPerNode == 0 {
		n.RanksPerNode = 1
	}
	if n.LinksPerNode == 0 {
		n.LinksPerNode = n.RanksPerNode
	}
	return n, nil
}
