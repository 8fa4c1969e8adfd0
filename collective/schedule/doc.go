// Package schedule says what each rank does in a collective call, step by step: which
// parts of its memory it puts into that of which other rank, what it waits for, and
// what it combines. Its functions are pure. Each rank works out its own [Plan] from
// what all ranks know of the call, and nothing is said between them beforehand; who
// carries the plans out, over whatever network, is up to the caller.
//
//	plan, err := schedule.Allreduce(rank, size, length, schedule.Options{Algorithm: schedule.Ring, Commutative: true})
//
// All ranks of a call must give the same size, root, length and options, but for
// Options.InPlace where its comment says so.
//
// # What a plan promises
//
// Puts arrive in any order, and as late as they like, also behind puts that were begun
// after them. Whatever the order, a plan reads what a peer puts only behind the [Await] of
// that put, and nothing else writes there meanwhile. It changes what a Put of its own
// reads only behind a [Settle], or behind an Await that cannot end before the peer has
// had that put: its peer, or a chain of ranks that begins there, awaited it before it put
// what is awaited here. It reads nothing that was not given or written. Each Put and
// each [Signal] has one Await at its peer, and each Await has one Put or Signal.
//
// A put of no units is left out, on both sides.
//
// # Order of operands
//
// Reductions of Options without Commutative have the result a0 op a1 op ... op an-1, in
// the order of the ranks, with brackets that depend on the size, the algorithm, and, where
// each rank combines a block, the block: the operator needs to be associative, and one that
// is so but for rounding gives the same bits each time, whichever rank is the root. With
// Commutative the operands may change places as well, and where they stand may depend on
// the root.
package schedule
