// Package cost says how long a collective would take on a network that is described by a
// few numbers, by carrying out the plans of all ranks on paper: an event after the other,
// without clock or network.
//
//	call := schedule.Call{Collective: schedule.CollectiveAllreduce, Size: 1024, Length: 1 << 20}
//	call.Algorithm, call.Commutative = schedule.Ring, true
//	took, err := cost.Cost(call, 4, cost.EFA())
//
// # The model
//
// A rank does its steps one after the other. To begin a put takes it Overhead; the put then
// waits until its link is free, occupies it for its length by Bandwidth, is Latency on its
// way, and occupies the link of its peer for as long, which it may have to wait for too.
// So a put between two ranks that do nothing else takes Overhead + Latency + length /
// Bandwidth, and what has to share a link goes one after the other, in the order in which
// it comes there. The network between the links has room for all. Puts within a node go past
// the links, and have numbers of their own. To await a put takes Receive once it is there, and
// to combine and to copy takes the length of the result by ReduceRate and CopyRate.
//
// Beside its plan a rank does what package collective does: Call, once; where a call is longer
// than Slot it says to each rank that puts to it that it is ready, and waits for the like; and
// Handed, it copies the result, of a call longer than Slot what others put there piece by piece as
// it comes, unless that is so long that others put it where it belongs (Direct). Among more ranks than Telling, a put is there for its peer when
// a notice has followed it. [Row] has calls made one after the other, and [Cost] has one.
//
// Not in the model: what ranks do beside the call, that they enter it at different times,
// that the device wants memory registered or the input of a short call copied to where it is,
// the memory that ranks of a node share, switches that have less room than their links, and
// everything random.
package cost
