package fabric

import (
	"strconv"

	"github.com/weft-go/weft/cgo"
)

// OpKind says what an operation does.
type OpKind uint8

// The kinds of operation.
const (
	OpTaggedSend    OpKind = iota + 1 // fi_tsend and its forms
	OpTaggedReceive                   // fi_trecv and its forms
	OpTaggedInject                    // fi_tinject, fi_tinjectdata: no completion
	OpSend                            // fi_send and its forms
	OpReceive                         // fi_recv and its forms
	OpInject                          // fi_inject, fi_injectdata: no completion
	OpRead                            // fi_read and its forms: from Remote into Buf
	OpWrite                           // fi_write and its forms: from Buf to Remote
	OpWriteInject                     // fi_inject_write, fi_inject_writedata: no completion
	OpAtomic                          // fi_atomic: Buf into Remote
	OpAtomicInject                    // fi_inject_atomic: no completion
	OpFetch                           // fi_fetch_atomic: likewise, what was there into Atomic.Result
	OpCompare                         // fi_compare_atomic: likewise, depending on Atomic.Compare

	// OpRemoteWrite is the kind of a completion only: a peer wrote to this
	// side's memory with an immediate.
	OpRemoteWrite
	// OpCollective is the kind of the completion of a collective, which the
	// methods of Group post.
	OpCollective
)

// String names the kind in words.
func (k OpKind) String() string {
	if int(k) < len(kinds) && kinds[k].name != "" {
		return kinds[k].name
	}
	return "operation of unknown kind " + strconv.Itoa(int(k))
}

// kinds says for each kind how it is called here and in C, on which queue it
// completes, and what it needs.
var kinds = [...]struct {
	name    string
	code    uint32
	receive bool // completes on the receive queue
	inject  bool // has no completion
	remote  bool // needs Op.Remote
	atomic  bool // needs Op.Atomic
}{
	OpTaggedSend:    {name: "tagged send", code: cgo.KindTaggedSend},
	OpTaggedReceive: {name: "tagged receive", code: cgo.KindTaggedReceive, receive: true},
	OpTaggedInject:  {name: "tagged inject", code: cgo.KindTaggedInject, inject: true},
	OpSend:          {name: "send", code: cgo.KindSend},
	OpReceive:       {name: "receive", code: cgo.KindReceive, receive: true},
	OpInject:        {name: "inject", code: cgo.KindInject, inject: true},
	OpRead:          {name: "read", code: cgo.KindRead, remote: true},
	OpWrite:         {name: "write", code: cgo.KindWrite, remote: true},
	OpWriteInject:   {name: "write inject", code: cgo.KindWriteInject, inject: true, remote: true},
	OpAtomic:        {name: "atomic", code: cgo.KindAtomic, remote: true, atomic: true},
	OpAtomicInject:  {name: "atomic inject", code: cgo.KindAtomicInject, inject: true, remote: true, atomic: true},
	OpFetch:         {name: "fetching atomic", code: cgo.KindFetch, remote: true, atomic: true},
	OpCompare:       {name: "comparing atomic", code: cgo.KindCompare, remote: true, atomic: true},
	OpRemoteWrite:   {name: "remote write"},
	OpCollective:    {name: "collective"},
}

// OpFlags adjust an operation.
type OpFlags uint64

// The flags of operations.
const (
	// Immediate sends Op.Immediate along, which arrives in Completion.Immediate
	// (FI_REMOTE_CQ_DATA). How many of its bits is the provider's to say.
	Immediate = OpFlags(cgo.FlagImmediate)
	// WithCompletion asks for a completion where the endpoint was opened to
	// have them only on request (FI_COMPLETION).
	WithCompletion = OpFlags(cgo.FlagCompletion)
	// Fence holds the operation back until those before it to the same peer are
	// complete (FI_FENCE).
	Fence = OpFlags(cgo.FlagFence)
	// InjectComplete, TransmitComplete and DeliveryComplete say what the
	// completion means: that Buf may be used again, that the message is out of
	// this side's hands, that it is in the peer's memory.
	InjectComplete   = OpFlags(cgo.FlagInjectComplete)
	TransmitComplete = OpFlags(cgo.FlagTransmitComplete)
	DeliveryComplete = OpFlags(cgo.FlagDeliveryComplete)
	// MultiReceive lets one receive take message after message into its buffer
	// until less than a minimum is left (FI_MULTI_RECV). Each has a completion
	// with its Offset, and the last one says Released.
	MultiReceive = OpFlags(cgo.FlagMultiReceive)
	// Peek asks whether a message that matches has arrived, without receiving
	// it: the completion has its length, or is ErrNoMessage (FI_PEEK).
	Peek = OpFlags(cgo.FlagPeek)
	// Claim with Peek keeps the message for a receive with Claim and the token
	// of the completion in Op.Claimed (FI_CLAIM).
	Claim = OpFlags(cgo.FlagClaim)
	// Discard with Peek or Claim drops the message (FI_DISCARD).
	Discard = OpFlags(cgo.FlagDiscard)
)

// MPITag is a tag in the layout that MPI programs announce as FI_TAG_MPI: a tag
// and the id of a payload.
//
// Implements: uint64_t fi_tag_mpi(...)
func MPITag(tag int32, payload uint8) uint64 { return cgo.MPITag(tag, payload) }

// Remote is where a peer's memory is. Address is what the peer said,
// plus an offset: a virtual address, or an offset in the region, as its domain
// has it.
type Remote struct {
	Address, Key uint64
}

// Op is one operation to post.
type Op struct {
	Kind OpKind
	// Peer is the destination, or the source of a receive. Receives from
	// AddressAny and receives from a named peer must not be mixed on one
	// endpoint: several providers match them wrongly. It does not count on a
	// connected endpoint.
	Peer Address
	// Tag is sent, or matched where the bits of Ignore are clear.
	Tag, Ignore uint64
	// Buf is what is sent, or where it is received to. It may be empty.
	Buf []byte
	// Descriptor covers Buf where the device needs registration.
	Descriptor Descriptor
	// Fixed says that the operation's memory stays where it is by itself: it is
	// outside the Go heap, or pinned by the caller. Any other is pinned until
	// completion.
	Fixed bool
	// Context is given back in the operation's Completion.
	Context uint64

	// Flags are for all but the injected kinds, which take Immediate only.
	Flags     OpFlags
	Immediate uint64
	// Claimed is the token of a message that was peeked at and claimed.
	Claimed Token
	// Remote is for RMA and atomic operations.
	Remote Remote
	// Vector is several buffers in place of Buf, with their Descriptors if the
	// device needs registration. A provider takes a few (Info.Vectors), weft
	// eight at most.
	Vector      [][]byte
	Descriptors []Descriptor
	// Atomic is for atomic operations.
	Atomic *Atomic

	// Result, Token and Err are set by Turn.
	Result Result
	Token  Token
	Err    error
}

// Result says what became of the attempt to post an operation.
type Result uint8

// The results of Turn for an operation.
const (
	Refused Result = iota // not posted, there is no room (FI_EAGAIN): offer it again
	Posted                // the device has it
	Failed                // not posted, and Err says why
)

// Completion is the end of one operation, or one message of a MultiReceive.
type Completion struct {
	// Context is that of the operation.
	Context uint64
	// Kind is the kind of the operation.
	Kind OpKind
	// Tag is the tag that the sender gave, for a receive that succeeded.
	Tag uint64
	// Len is the number of bytes received, or peeked at; 0 for a send.
	Len int
	// Source is who sent, where the provider knows.
	Source Address
	// HasImmediate says that Immediate came with the message.
	HasImmediate bool
	Immediate    uint64
	// Offset is where a message of a MultiReceive begins in the buffer, and
	// Released that the buffer is the caller's again.
	Offset   int
	Released bool
	// Token is that of a message that was claimed.
	Token Token
	// Err is nil, or says why the operation failed: ErrCanceled, ErrTruncated
	// with the surplus in it, or what else the provider reports.
	Err error
}

// plain says that an operation needs nothing but the simplest call.
func (op *Op) plain() bool {
	return op.Flags == 0 && len(op.Vector) == 0 && op.Kind < OpRead
}

// wrong says what keeps an operation from being posted, or "".
func (op *Op) wrong() string {
	if int(op.Kind) >= len(kinds) || kinds[op.Kind].code == 0 {
		return "there is no such kind of operation"
	}
	k := &kinds[op.Kind]
	switch {
	case len(op.Vector) > cgo.MaxVectors:
		return "an operation has at most " + strconv.Itoa(cgo.MaxVectors) + " buffers, not " + strconv.Itoa(len(op.Vector))
	case len(op.Vector) > 0 && len(op.Buf) > 0:
		return "an operation has either Buf or Vector"
	case len(op.Descriptors) > 0 && len(op.Descriptors) != len(op.Vector):
		return strconv.Itoa(len(op.Descriptors)) + " descriptors for " + strconv.Itoa(len(op.Vector)) + " buffers"
	case k.inject && (len(op.Vector) > 0 || op.Flags&^Immediate != 0):
		return "an injected operation has one buffer, and no flag but Immediate"
	case k.atomic:
		return op.Atomic.wrong(op)
	}
	return ""
}
