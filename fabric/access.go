package fabric

import "github.com/weft-go/weft/cgo"

// Access is the set of things that may be done with registered memory (FI_SEND
// and the like, as fi_mr_reg takes them).
type Access uint64

// The kinds of access. The first four are about this side's own operations, the
// next two about those of peers.
const (
	AccessSend        Access = Access(cgo.AccessSend)        // messages from it
	AccessReceive     Access = Access(cgo.AccessReceive)     // messages into it
	AccessRead        Access = Access(cgo.AccessRead)        // what is read from a peer goes into it
	AccessWrite       Access = Access(cgo.AccessWrite)       // what is written to a peer comes from it
	AccessRemoteRead  Access = Access(cgo.AccessRemoteRead)  // peers read it
	AccessRemoteWrite Access = Access(cgo.AccessRemoteWrite) // peers write it, and change it atomically
	AccessCollective  Access = Access(cgo.AccessCollective)  // collective operations

	// AccessMessages is the Access of a region that does not say.
	AccessMessages = AccessSend | AccessReceive
	// AccessAll is everything but collective operations.
	AccessAll = AccessMessages | AccessRead | AccessWrite | AccessRemoteRead | AccessRemoteWrite
)

var accessNames = setNames[Access]{
	{AccessSend, "send"},
	{AccessReceive, "receive"},
	{AccessRead, "read"},
	{AccessWrite, "write"},
	{AccessRemoteRead, "remote read"},
	{AccessRemoteWrite, "remote write"},
	{AccessCollective, "collective"},
}

// Has says whether all of other is in the set.
func (a Access) Has(other Access) bool { return a&other == other }

// String lists what is in the set.
func (a Access) String() string { return accessNames.list(a) }

// known says whether the set has nothing but what this package names.
func (a Access) known() bool { return a&^(AccessAll|AccessCollective) == 0 }
