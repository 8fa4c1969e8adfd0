package fabric

import (
	"math"
	"strings"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// CollectiveKind is a kind of collective (enum fi_collective_op).
type CollectiveKind uint32

// The kinds of collective, named as the methods of Group.
const (
	Barrier       CollectiveKind = CollectiveKind(cgo.CollectiveBarrier)
	Broadcast     CollectiveKind = CollectiveKind(cgo.CollectiveBroadcast)
	AllToAll      CollectiveKind = CollectiveKind(cgo.CollectiveAllToAll)
	AllReduce     CollectiveKind = CollectiveKind(cgo.CollectiveAllReduce)
	AllGather     CollectiveKind = CollectiveKind(cgo.CollectiveAllGather)
	ReduceScatter CollectiveKind = CollectiveKind(cgo.CollectiveReduceScatter)
	Reduce        CollectiveKind = CollectiveKind(cgo.CollectiveReduce)
	Scatter       CollectiveKind = CollectiveKind(cgo.CollectiveScatter)
	Gather        CollectiveKind = CollectiveKind(cgo.CollectiveGather)
)

var collectiveNames = names[CollectiveKind]{
	Barrier: "fi_barrier", Broadcast: "fi_broadcast", AllToAll: "fi_alltoall", AllReduce: "fi_allreduce",
	AllGather: "fi_allgather", ReduceScatter: "fi_reduce_scatter", Reduce: "fi_reduce",
	Scatter: "fi_scatter", Gather: "fi_gather",
}

// String is the name of libfabric's call.
func (k CollectiveKind) String() string { return collectiveNames.numbered(k, "collective ") }

// reduces says that the kind combines values.
func (k CollectiveKind) reduces() bool { return k == AllReduce || k == ReduceScatter || k == Reduce }

// CollectiveLimits is what a domain can do of one kind of collective.
type CollectiveLimits struct {
	// MaxMembers is the most members of a group; 0 where the provider does not say.
	MaxMembers int
	// MaxValues is the most values of one operation, and ValueSize the bytes of
	// each; 0 where the provider does not say.
	MaxValues, ValueSize int
	// MaxMessage is the most bytes that one member may have for another: those of a
	// Broadcast, AllReduce or AllGather, and those of all members of a Scatter; 0 where no
	// bound is known.
	MaxMessage int
}

// longestCollective is how long the messages of collectives may be that libfabric does itself
// over ofi_rxm: what does not go at once never completes. FI_OFI_RXM_BUFFER_SIZE is ofi_rxm's
// setting for that; a program that makes it larger gains nothing here, and of one that is not
// understood the least is taken.
func longestCollective(provider string) int {
	if !strings.HasSuffix(provider, ";ofi_rxm") {
		return 0
	}
	if n := rxmBuffers(); n > 0 {
		return min(n, usualBuffers)
	}
	return 64
}

// CollectiveLimits asks what the domain can do. Only AllReduce, ReduceScatter
// and Reduce look at the operation, from Min to BitXor, and Barrier does not
// look at the type. ErrNotSupported says that it cannot do this at all.
//
// Implements: int fi_query_collective(...)
func (d *Domain) CollectiveLimits(kind CollectiveKind, operation AtomicOp, t DataType) (CollectiveLimits, error) {
	if err := d.enter(); err != nil {
		return CollectiveLimits{}, err
	}
	defer d.leave()
	var why string
	switch {
	case collectiveNames[kind] == "":
		why = "there is no " + kind.String()
	case kind != Barrier && t.Size() == 0:
		why = noType(t)
	case kind.reduces() && !operation.combines():
		why = noCombination(operation)
	}
	if why != "" {
		return CollectiveLimits{}, d.invalid("fi_query_collective", why)
	}
	return d.collectiveLimits(kind, operation, t)
}

// collectiveLimits is CollectiveLimits for what there is.
func (d *Domain) collectiveLimits(kind CollectiveKind, operation AtomicOp, t DataType) (CollectiveLimits, error) {
	if kind != Barrier && !atHand(t, 0) {
		return CollectiveLimits{}, fail("fi_query_collective of "+kind.String(), d.provider, int(syscall.EOPNOTSUPP))
	}
	op, datatype := cgo.OpNone, t.native()
	if kind.reduces() {
		op = operation.native()
	}
	if kind == Barrier {
		datatype = cgo.TypeVoid
	}
	members, count, size, code := d.raw.QueryCollective(uint32(kind), op, datatype)
	if code != 0 {
		return CollectiveLimits{}, fail("fi_query_collective of "+kind.String(), d.provider, int(code))
	}
	bounded := func(n uint64) int { return int(min(n, math.MaxInt32)) }
	return CollectiveLimits{
		MaxMembers: bounded(members), MaxValues: bounded(count), ValueSize: bounded(size), MaxMessage: longestCollective(d.provider),
	}, nil
}
