package fabric

import (
	"strconv"

	"github.com/weft-go/weft/cgo"
)

// OpKind says what an operation does.
type OpKind uint8

// The kinds of operation, with the calls that they make. An operation with one
// buffer and without flags is posted by the plain form of the call, and any other
// by the form with a message (fi_tsendmsg and the like) or the one with immediate
// data (fi_tsenddata). The injected kinds are done with their buffer when Turn
// returns, and have no completion; more than Info.InjectSize bytes are ErrInvalid.
const (
	OpTaggedSend    OpKind = iota + 1 // fi_tsend and its forms
	OpTaggedReceive                   // fi_trecv and its forms
	OpTaggedInject                    // fi_tinject, fi_tinjectdata: no completion
	OpSend                            // fi_send and its forms
	OpReceive                         // fi_recv and its forms
	OpInject                          // fi_inject, fi_injectdata: no completion
	OpRead                            // fi_read and its forms: from Remote into Buf
	OpWrite                           // fi_write and its forms: from Buf to Remote
	OpWriteInject                     // fi_inject_write, fi_inject_writedata: no completion; 4096 bytes at most on efa of libfabric 1.x
	OpAtomic                          // fi_atomic: Buf into Remote; on shm, and efa that has it, without DeliveryComplete
	OpAtomicInject                    // fi_inject_atomic: no completion
	OpFetch                           // fi_fetch_atomic: as OpAtomic, what was there into Atomic.Result
	OpCompare                         // fi_compare_atomic: as OpFetch, depending on Atomic.Compare

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
// completes, what it needs, and which flags it can have.
var kinds = [...]struct {
	name    string
	code    uint32
	receive bool // completes on the receive queue
	inject  bool // has no completion
	remote  bool // needs Op.Remote
	atomic  bool // needs Op.Atomic
	flags   OpFlags
}{
	OpTaggedSend:    {name: "tagged send", code: cgo.KindTaggedSend, flags: sendFlags},
	OpTaggedReceive: {name: "tagged receive", code: cgo.KindTaggedReceive, receive: true, flags: WithCompletion | MultiReceive | Peek | Claim | Discard},
	OpTaggedInject:  {name: "tagged inject", code: cgo.KindTaggedInject, inject: true, flags: Immediate},
	OpSend:          {name: "send", code: cgo.KindSend, flags: sendFlags | ToMulticast},
	OpReceive:       {name: "receive", code: cgo.KindReceive, receive: true, flags: WithCompletion | MultiReceive | Peek | Claim | Discard},
	OpInject:        {name: "inject", code: cgo.KindInject, inject: true, flags: Immediate},
	OpRead:          {name: "read", code: cgo.KindRead, remote: true, flags: readFlags},
	OpWrite:         {name: "write", code: cgo.KindWrite, remote: true, flags: sendFlags},
	OpWriteInject:   {name: "write inject", code: cgo.KindWriteInject, inject: true, remote: true, flags: Immediate},
	OpAtomic:        {name: "atomic", code: cgo.KindAtomic, remote: true, atomic: true, flags: sendFlags},
	OpAtomicInject:  {name: "atomic inject", code: cgo.KindAtomicInject, inject: true, remote: true, atomic: true},
	OpFetch:         {name: "fetching atomic", code: cgo.KindFetch, remote: true, atomic: true, flags: sendFlags},
	OpCompare:       {name: "comparing atomic", code: cgo.KindCompare, remote: true, atomic: true, flags: sendFlags},
	OpRemoteWrite:   {name: "remote write"},
	OpCollective:    {name: "collective"},
}

// OpFlags adjust an operation, a set of bits.
type OpFlags uint64

// The flags of operations.
const (
	// Immediate sends Op.Immediate along, which arrives in Completion.Immediate
	// (FI_REMOTE_CQ_DATA). How many of its bits is the provider's to say. OpRead
	// and OpAtomicInject have none.
	Immediate OpFlags = OpFlags(cgo.FlagImmediate)
	// WithCompletion asks for a completion (FI_COMPLETION). All kinds but the
	// injected ones have one without it: weft binds no queue for completions on
	// request (FI_SELECTIVE_COMPLETION), because it is by its completion that an
	// operation gives its memory and its place back.
	WithCompletion OpFlags = OpFlags(cgo.FlagCompletion)
	// Fence holds the operation back until those before it to the same peer are
	// complete (FI_FENCE). It is ErrNotSupported on an endpoint whose Info has no
	// FencedOperations.
	Fence OpFlags = OpFlags(cgo.FlagFence)
	// InjectComplete, TransmitComplete and DeliveryComplete say what the
	// completion means: that Buf may be used again, that the message is out of
	// this side's hands, that it is in the peer's memory (FI_INJECT_COMPLETE,
	// FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE).
	InjectComplete   OpFlags = OpFlags(cgo.FlagInjectComplete)
	TransmitComplete OpFlags = OpFlags(cgo.FlagTransmitComplete)
	DeliveryComplete OpFlags = OpFlags(cgo.FlagDeliveryComplete)
	// MatchComplete and CommitComplete are for hardware that has them: that a
	// receive of the peer's has taken the message, that what was written is in
	// persistent memory (FI_MATCH_COMPLETE, FI_COMMIT_COMPLETE). Providers that do
	// not have them refuse the operation, or take it as one without; ask for them in
	// Hints.SendFlags, and none is found that cannot.
	MatchComplete  OpFlags = OpFlags(cgo.FlagMatchComplete)
	CommitComplete OpFlags = OpFlags(cgo.FlagCommitComplete)
	// completionLevels say what a completion means.
	completionLevels = InjectComplete | TransmitComplete | DeliveryComplete | MatchComplete | CommitComplete
	// MultiReceive lets one receive take message after message into its buffer
	// until less than OptionMinMultiReceive is left (FI_MULTI_RECV). Each has a
	// completion with its Offset. The last one says Released, and may be one of
	// its own, without a message; if a message is longer than what is left, it is that
	// one's, with ErrTruncated. Where libfabric goes wrong with that, which is everywhere but on
	// connected endpoints of tcp and on "tcp;" of 2.x, it is weft that posts what is left as it reads
	// each message: several such buffers take turns, one is Released early while a receive for one
	// message is in flight, so that it does not overtake that, or by a message whose sender is gone,
	// and on tagged receives each message is the last. The buffer is Op.Buf, which is not empty. For an OpTaggedReceive it is ErrNotSupported on an endpoint whose Info has no
	// TaggedMultiReceiveBuffers, as before libfabric 2.0.
	MultiReceive OpFlags = OpFlags(cgo.FlagMultiReceive)
	// Peek asks whether a message that matches has arrived, without receiving
	// it: the completion has its length, or is ErrNoMessage, which may be the
	// same value each time (FI_PEEK). It is ErrNotSupported with shm of libfabric 1.x, and for an OpReceive where the
	// provider would receive the message.
	Peek OpFlags = OpFlags(cgo.FlagPeek)
	// Claim with Peek keeps the message for a receive with Claim and the token
	// of the completion in Op.Claimed (FI_CLAIM).
	Claim OpFlags = OpFlags(cgo.FlagClaim)
	// Discard with Peek or Claim drops the message (FI_DISCARD).
	Discard OpFlags = OpFlags(cgo.FlagDiscard)

	readFlags = WithCompletion | Fence | completionLevels
	sendFlags = readFlags | Immediate
)

// MPITag is a tag in the layout that MPI programs announce as FI_TAG_MPI: a tag
// and the id of a payload.
//
// Implements: uint64_t fi_tag_mpi(...)
func MPITag(tag int32, payload uint8) uint64 { return cgo.MPITag(tag, payload) }

// Remote is where a peer's memory is. Address is what the peer said,
// plus an offset in bytes: a virtual address, or an offset in the region, as its
// domain has it. Key is that of the region. An operation whose memory there would end
// beyond the last address that there is fails with ErrInvalid.
type Remote struct {
	Address, Key uint64
}

// RemotePart is a piece of a peer's memory, of Len bytes.
type RemotePart struct {
	Remote
	Len uint64
}

// Op is one operation to post. It is the caller's again when Turn returns; what
// belongs to the operation until its completion is the memory that it names.
type Op struct {
	Kind OpKind // what it does
	// Peer is the destination, or the source of a receive. Receives from
	// AddressAny and receives from a named peer must not be mixed on one
	// endpoint: several providers match them wrongly. Where untagged ones would end the
	// process (shm, efa and ofi_rxm of libfabric 2), ErrInvalid says so. One that the
	// endpoint's address vector does not have is ErrNotFound, unless the endpoint has no
	// DirectedReceive and receives. It does not count on a connected endpoint.
	Peer Address
	// Tag is sent, or matched where the bits of Ignore are clear, by the tagged
	// kinds. With shm of libfabric 1.17, a receive with Ignore misses messages that came
	// before it, and receives after it may be ErrMismatched.
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

	// Flags are for all but the injected kinds, which take Immediate only; that
	// flag sends the number Immediate along, of Info.ImmediateSize bytes: a larger
	// one is ErrInvalid.
	Flags     OpFlags
	Immediate uint64
	// Claimed is the token of a message that was peeked at and claimed.
	Claimed Token
	// Remote is where reads, writes and atomic operations find the peer's memory.
	Remote Remote
	// Remotes is several pieces of it in place of Remote, where the operation is not injected:
	// together as long as the operation's memory here, which they are read into,
	// written from or combined with one after the other, each of whole values for an atomic
	// operation. A provider takes a few
	// (SendAttributes.RemoteVectors), weft eight at most; more are ErrInvalid.
	Remotes []RemotePart
	// Vector is several buffers in place of Buf, with their Descriptors if the
	// device needs registration. A provider takes a few
	// (SendAttributes.Vectors, ReceiveAttributes.Vectors), weft eight at most; more
	// are ErrInvalid.
	Vector      [][]byte
	Descriptors []Descriptor
	// Atomic is what atomic operations have beside.
	Atomic *Atomic

	// Result says whether Turn has posted the operation, Token names it for
	// Cancel if so, and Err says why not if it Failed. Turn sets them.
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

// String is the result in a word.
func (r Result) String() string {
	return names[Result]{Refused: "refused", Posted: "posted", Failed: "failed"}.of(r)
}

// Completion is the end of one operation, one message of a MultiReceive, or a
// peer's write with an immediate.
type Completion struct {
	// Context is that of the operation.
	Context uint64
	// Kind is the kind of the operation, or OpRemoteWrite, which is of none.
	Kind OpKind
	// Tag is the tag that the sender gave, for a tagged receive that succeeded.
	Tag uint64
	// Len is the number of bytes received, peeked at, or written by a peer, which tcp of libfabric 1.x
	// does not tell (0), and sockets of the first piece of remote memory alone; nor is it told of a
	// message that is discarded. It is 0 for everything else.
	Len int
	// Source is who sent, if the info has SourceAddress and the peer is known;
	// else AddressAny.
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
	// with the surplus in it, ErrMismatched, or what else the provider reports.
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
	case k.inject && len(op.Vector) > 0:
		return "an injected operation has one buffer"
	case k.receive && op.Flags&MultiReceive != 0 && (len(op.Vector) > 0 || len(op.Buf) == 0):
		return "a MultiReceive has one buffer, Buf, with room for messages"
	case k.receive && op.Flags&(Peek|Claim|Discard) == Discard:
		return "Discard is of a message that is peeked at or claimed, and goes with Peek or Claim"
	case k.atomic:
		return op.Atomic.wrong(op)
	}
	switch {
	case !k.remote:
		return ""
	case len(op.Remotes) > 0:
		return op.wrongRemotes(uint64(op.length()), 1)
	}
	return op.Remote.wrong(uint64(op.length()))
}
