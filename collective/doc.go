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
// their own, which is kept for the next, and tell their peers where that is. On shm ranks map
// each other's caches, and that memory, and copy there what they put ([Stats.Neighbours],
// [SharedMemory], [Stats.CrossedBytes]). A
// result that others put to this rank is copied from there, unless it has 64 KiB or more and
// the device can write to any memory, as sockets, tcp and shm can: then it is recv that the
// peers are told of, for the time of the call; on shm, if it has more than 64 MiB, or 2 MiB where the
// kernel copies that about as fast as a core does, which the first call with such a result finds out (10 ms, once in
// a process), or of an Allreduce.
//
// Data in a [fabric.Arena] are not copied in these calls. The arena is registered as a
// whole, when it is used first and until it is closed, and others put results of 16 KiB
// or more where the program wants them; so all ranks of the world can write to all of the
// arena, as they can to the cache. It is a matter of each rank alone. The same elements
// may be send and recv where a call says so, and in Gather and Allgather send may be this
// rank's part of recv; slices that have something else in common are copied.
// operator.Elements makes elements of an arena's bytes.
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
// Errors of all calls are those of the package. *ArgumentError, *operator.TypeError and
// operator.ErrNoOperator say that the call was refused: it has not begun on this rank. If it is
// refused on all, nothing has happened; if another rank makes it, it fails there and with it
// all that are under way or follow, on all ranks (ReasonArgument). *ConfigError and
// *ProviderError, which is where the provider cannot write to the memory of other ranks (fabric.ErrNotSupported), say
// that this rank makes no calls at all. *AbortError, *comm.RankError,
// *MismatchError, what the operator returned (for errors.Is), and the cause of ctx
// (context.Cause) end the calls of the communicator, on all ranks: those that follow, and
// those that are still under way on a rank, though they may have ended well on others. A ctx
// that has ended already ends a call that has to wait, and no other. What begins a call
// (Ibarrier and so on) returns at once that it is refused, and the rest by [Request.Wait].
// net.ErrClosed is after Close.
//
// A call cannot be taken back. Only Close of the communicator ends one that has begun, and of
// the blocking calls the end of ctx.
//
// A call that fails on one rank ends on all, with an error: a *[AbortError] where another
// rank has given up, a *comm.RankError where one is lost, whether the call needed more of it
// or not, or has left (comm.ErrLeft) and the call needs it. After that the communicator has
// no collective calls any more: they return the same error. Its messages go on.
//
// What is in recv after an error is not specified. If the error has an *efa.InFlightError,
// the memory of the call is in use until Released is closed: the device still reads what
// the call was given, or a rank that knows of recv has not said that it writes no more. A
// call waits for that for up to two seconds, and for a rank that is lost not at
// all: then Released is closed when the world is. Close of an arena that recv is in is
// refused until then. There may be more than one of them in an error, of which errors.As finds the first
// only: efa.Released waits for all.
package collective
