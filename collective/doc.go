// Package collective gives a communicator what all of its ranks do together: barriers,
// broadcasts, reductions and the rest. Data goes by writes into memory that the ranks
// have registered beforehand, one-sided: the receiver's program need not do anything for
// it to arrive.
//
//	sum := make([]float32, len(gradient))
//	err := collective.Allreduce(ctx, world, gradient, sum, operator.Sum[float32]())
//
// Every function is called by all ranks of the communicator, in the same order, with the
// same root, operator and, where nothing else is said, the same number of elements; and by one
// goroutine at a time on each rank. What each rank does is a plan of package schedule.
//
// # Several at once
//
// The functions whose names begin with I begin a call, and return a [Request] to wait
// with. Calls begin in the order in which they are made; a few are under way at a time,
// and the others follow.
//
// # Memory
//
// Each communicator has a cache of registered memory, which it gets with its first call:
// [Config.CachePages] pages. What fits into a part of it goes through it, and needs no
// word between ranks before it goes. Calls with more data have registered memory of
// their own, which is kept for the next, and tell their peers where that is.
//
// # The provider's own
//
// Where the provider has collectives of its own (fi_collective.h), they are one more
// algorithm, schedule.Provider, over an endpoint beside the world's. It is never chosen unless
// [Config] or the call asks for it. A call that asks for what the provider does not do is an
// *[ArgumentError]; where the Config asks, another algorithm is taken. All ranks must have
// the same libfabric then, calls of which ranks differ are not noticed, and results go through
// copies.
//
// # Failures
//
// A call that fails on one rank ends on all, with an error: a *[AbortError] where another
// rank has given up, a *comm.RankError where one is lost. After that the communicator has
// no collective calls any more: they return the same error. Its messages go on.
package collective
