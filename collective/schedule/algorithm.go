package schedule

import (
	"slices"
	"strconv"
	"strings"
)

// Collective is a kind of call.
type Collective uint8

// The collectives. Those of Gatherv, Scatterv, Allgatherv, ReduceScatterv and Alltoallv are
// the ones without v.
const (
	CollectiveBarrier Collective = iota + 1
	CollectiveBcast
	CollectiveReduce
	CollectiveAllreduce
	CollectiveGather
	CollectiveScatter
	CollectiveAllgather
	CollectiveReduceScatter
	CollectiveAlltoall
)

// Algorithm is a way to do a collective. Which collectives have it is what [Algorithms]
// says.
type Algorithm uint8

// The algorithms.
const (
	// Default is whichever comes first and keeps what Options ask for.
	Default Algorithm = iota
	// Dissemination has rank r tell rank r + 2^k in round k.
	Dissemination
	// Tree goes along a tree in which each rank has Options.Fanout children.
	Tree
	// Binomial halves the ranks again and again; one rank of a half deals with one of
	// the other.
	Binomial
	// ScatterAllgather gives each rank a block of the data, and then all blocks to all.
	ScatterAllgather
	// ReduceBcast reduces to a rank, which gives the result to all.
	ReduceBcast
	// RecursiveDoubling has each rank exchange all it has with the rank 1 away, then 2
	// away, then 4...
	RecursiveDoubling
	// Rabenseifner scatters the result by recursive halving, and gathers it by recursive
	// doubling.
	Rabenseifner
	// Ring hands blocks from each rank to the next.
	Ring
	// Direct has each rank put all that it has to each of those who need it.
	Direct
	// Pairwise has each rank put to each other one the block that is for it.
	Pairwise
	// Bruck has each rank deal with those 1, 2, 4, ... away, and so with all others in few
	// rounds.
	Bruck
	// RecursiveHalving has the two halves of the ranks exchange what is for the other,
	// then the halves of those...
	RecursiveHalving
	// Provider is for who carries plans out: the collectives that the network has of its own.
	// There is no plan for it, and it is not among [Algorithms].
	Provider
)

var algorithmNames = []string{
	Default:           "default",
	Dissemination:     "dissemination",
	Tree:              "tree",
	Binomial:          "binomial",
	ScatterAllgather:  "scatter-allgather",
	ReduceBcast:       "reduce-bcast",
	RecursiveDoubling: "recursive-doubling",
	Rabenseifner:      "rabenseifner",
	Ring:              "ring",
	Direct:            "direct",
	Pairwise:          "pairwise",
	Bruck:             "bruck",
	RecursiveHalving:  "recursive-halving",
	Provider:          "provider",
}

var collectiveNames = []string{
	CollectiveBarrier:       "barrier",
	CollectiveBcast:         "bcast",
	CollectiveReduce:        "reduce",
	CollectiveAllreduce:     "allreduce",
	CollectiveGather:        "gather",
	CollectiveScatter:       "scatter",
	CollectiveAllgather:     "allgather",
	CollectiveReduceScatter: "reduce-scatter",
	CollectiveAlltoall:      "alltoall",
}

// way is one algorithm of a collective.
type way struct {
	algorithm Algorithm
	// reorders says that it does not keep the order of the operands.
	reorders bool
}

// ways has the algorithms of each collective, the default first.
var ways = [][]way{
	CollectiveBarrier:       {{Dissemination, false}},
	CollectiveBcast:         {{Tree, false}, {ScatterAllgather, false}},
	CollectiveReduce:        {{Tree, true}, {Binomial, false}},
	CollectiveAllreduce:     {{RecursiveDoubling, false}, {ReduceBcast, false}, {Rabenseifner, false}, {Ring, true}, {Direct, false}, {Pairwise, false}},
	CollectiveGather:        {{Binomial, false}, {Direct, false}},
	CollectiveScatter:       {{Binomial, false}, {Direct, false}},
	CollectiveAllgather:     {{Bruck, false}, {RecursiveDoubling, false}, {Ring, false}, {Direct, false}},
	CollectiveReduceScatter: {{Pairwise, false}, {RecursiveHalving, true}, {Ring, true}},
	CollectiveAlltoall:      {{Pairwise, false}, {Bruck, false}},
}

func (c Collective) String() string { return nameOf(collectiveNames, int(c), "unknown collective") }

func (a Algorithm) String() string { return nameOf(algorithmNames, int(a), "unknown algorithm") }

func nameOf(names []string, i int, unknown string) string {
	if i < len(names) && names[i] != "" {
		return names[i]
	}
	return unknown + " " + strconv.Itoa(i)
}

// Collectives returns all collectives.
func Collectives() []Collective {
	var all []Collective
	for c := CollectiveBarrier; int(c) < len(ways); c++ {
		all = append(all, c)
	}
	return all
}

// Algorithms returns the algorithms that a collective has, but for [Default], and none of
// what is no collective.
func Algorithms(c Collective) []Algorithm {
	if int(c) >= len(ways) {
		return nil
	}
	var all []Algorithm
	for _, w := range ways[c] {
		all = append(all, w.algorithm)
	}
	return all
}

// Known says whether there is such a collective.
func Known(c Collective) bool { return c >= CollectiveBarrier && int(c) < len(ways) }

// Has says whether an algorithm is one of [Algorithms]. It does not allocate.
func Has(c Collective, a Algorithm) bool {
	return int(c) < len(ways) && slices.ContainsFunc(ways[c], func(w way) bool { return w.algorithm == a })
}

// KeepsOrder says whether an algorithm of the collective needs no Options.Commutative: it
// combines nothing, or keeps the operands in the order of their ranks.
func KeepsOrder(c Collective, a Algorithm) bool {
	_, err := c.choose(Options{Algorithm: a})
	return err == nil
}

// choose says which algorithm the options mean. Every error is an *AlgorithmError.
func (c Collective) choose(o Options) (Algorithm, error) {
	if int(c) >= len(ways) {
		return 0, &AlgorithmError{c, o.Algorithm, "a collective"}
	}
	for _, w := range ways[c] {
		switch {
		case o.Algorithm != Default && o.Algorithm != w.algorithm:
		case !w.reorders || o.Commutative:
			return w.algorithm, nil
		case o.Algorithm != Default:
			return 0, &AlgorithmError{c, o.Algorithm, "an operator that is commutative, or another algorithm"}
		}
	}
	var known []string
	for _, w := range ways[c] {
		known = append(known, w.algorithm.String())
	}
	return 0, &AlgorithmError{c, o.Algorithm, strings.Join(known, " or ")}
}

// ParseAlgorithm returns the algorithm of a name, such as "ring". The error is a
// *NameError.
func ParseAlgorithm(name string) (Algorithm, error) {
	i := slices.Index(algorithmNames, name)
	if i < 0 {
		return 0, &NameError{name, strings.Join(algorithmNames, ", ")}
	}
	return Algorithm(i), nil
}

// ParseCollective returns the collective of a name, such as "allreduce". The error is a
// *NameError.
func ParseCollective(name string) (Collective, error) {
	i := slices.Index(collectiveNames, name)
	if i < 1 {
		return 0, &NameError{name, strings.Join(collectiveNames[1:], ", ")}
	}
	return Collective(i), nil
}
