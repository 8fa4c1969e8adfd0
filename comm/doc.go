// Package comm gives Go programs what MPI programs have: ranks that send messages to
// each other and receive them by communicator, source and tag, with wildcards, in
// order, and with memory under control.
//
// A job's ranks open their world together, each with its own rank:
//
//	world, err := comm.Open(job.Context(), comm.Config{Rank: job.Rank, Size: job.Size, Exchange: job.Exchange})
//	...
//	defer world.Close()
//	if world.Rank() == 0 {
//		err = world.Send(ctx, data, 1, 7)
//	} else {
//		status, err := world.Recv(ctx, buf, comm.AnySource, comm.AnyTag)
//	}
//
// # Matching
//
// A receive takes the earliest message of its communicator that has its source and
// its tag, or any where it says AnySource or AnyTag; a message goes to the earliest
// receive that takes it. Messages of one rank are matched in the order in which they
// were sent. A message that comes before its receive waits in memory of this rank,
// of which Config.MaxUnexpected is the bound: then senders are held back, and nothing
// is lost. So a program that sends more than that before the receive for the last of
// it is posted may come to stand still, as MPI calls unsafe.
//
// Who does it is Config.Matching, the same on all ranks: this package, or the provider of
// the device (MatchByProvider), to which receives are handed down. A program sees the
// same in both, but that with the provider requests may end in another order than
// messages were matched in, and that a device which would do it wrongly is a
// *MatchingError. There a message that comes before its receive stays with the provider
// until somebody probes, its sender runs out of credit, or more receives wait than the
// device is given.
//
// # Protocols
//
// A short message is copied, and its Send returns at once (eager); a longer one is
// announced, and goes from the sender's memory to the receiver's when that has
// a receive for it (rendezvous). Ssend returns once the receive was found, whatever
// the length.
//
// # Failures
//
// When a rank is lost, whatever waits for it ends with a *RankError, receives from
// AnySource included, and the other ranks go on.
package comm
