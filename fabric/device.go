package fabric

import "time"

// Device is what an engine drives: one reliable-datagram endpoint with its
// address vector, its completion queue and its event queue. [Port] is the one
// made of libfabric; fabrictest has one in memory, with faults.
//
// Except for Wait and Wake the methods must not be called at the same time:
// whoever holds the engine's progress role calls them. Wait is for one goroutine
// at a time that need not hold the role, so that others can go on meanwhile.
// Wake may be called by anyone at any time.
type Device interface {
	// Attributes says what the device can do. It does not change.
	Attributes() Attributes

	// LocalAddress returns the endpoint's own address, to be told to peers in
	// whatever way the program has. Its format and length are the provider's. The
	// bytes are the device's, and do not change: the caller may keep them, and must
	// not write to them.
	LocalAddress() []byte

	// Insert makes a peer's address (its LocalAddress) usable as Op.Peer and
	// recognisable as Completion.Source. An address is to be inserted once:
	// not every provider recognises a second insertion of the same address. The
	// bytes are the caller's again on return.
	Insert(address []byte) (Address, error)

	// Remove forgets a peer. No operation to it may be in flight.
	Remove(peer Address) error

	// Register makes buf usable in operations on a device whose Attributes ask
	// for it (NeedsRegistration). buf stays the caller's and must not move or
	// be freed before Close of the registration.
	Register(buf []byte) (Registration, error)

	// Turn tries to post every operation of posts, in order, and then reads up
	// to len(completions) completions: one crossing into C for all of it.
	//
	// It sets Result, and where it applies Token and Err, of each operation.
	// After one that was refused (FI_EAGAIN) the later operations of the same
	// peer and direction are refused untried, so that order is kept, and those
	// of others are still tried. The caller offers what was refused again
	// later; it need not be the same slice.
	//
	// A buffer of a posted operation belongs to the device until the
	// completion with its Context has been returned, but for OpTaggedInject,
	// which has no completion and is done with its buffer on return.
	//
	// While nothing is there to be read, the read is repeated up to spins more
	// times, or less often if that is very often. reaped is the number of
	// completions filled in; 0 is normal. With no completions to fill in nothing is
	// read, and on most providers nothing moves. err is about the device as a
	// whole, never about one operation.
	Turn(posts []Op, completions []Completion, spins int) (reaped int, err error)

	// Cancel asks for the operation to end early. The operation completes
	// exactly once all the same: with ErrCanceled, or as if nothing had
	// happened. A token whose operation has completed is not an error.
	Cancel(token Token) error

	// Arm prepares a Wait. It says false if there is something to read already:
	// take a Turn instead.
	Arm() bool

	// Wait blocks until there may be something to read that came after Arm,
	// until Wake is called, or until timeout has passed, and may return early
	// for no reason. A Wake while nobody waits makes the next Wait return at
	// once.
	Wait(timeout time.Duration)

	// Errors takes the errors of the device that belong to no operation, such
	// as those of its event queue; nil where there is none.
	Errors() error

	// Wake ends the Wait under way, or the next one.
	Wake()

	// Close ends the device and its registrations. Operations still in flight
	// get no completion any more, and their buffers are the caller's again on
	// return.
	Close() error
}

// Attributes are the properties of a [Device].
type Attributes struct {
	Provider string // as libfabric names it, such as "tcp;ofi_rxm"
	Fabric   string // such as "127.0.0.1/32"
	Domain   string // such as "lo"

	// MaxMessage is the longest message in bytes that one operation carries.
	MaxMessage uint64
	// MaxInject is the longest message in bytes for OpTaggedInject.
	MaxInject int
	// MaxOperations bounds the operations in flight. A post beyond it is
	// refused like any other for which there is no room.
	MaxOperations int
	// NeedsRegistration says that each buffer of an operation must lie within
	// a Registration (FI_MR_LOCAL). OpTaggedInject is exempt.
	NeedsRegistration bool
	// Spin says that reading the queue again and again is worth it for short
	// waits. False where that would take the core from a progress thread of
	// the provider's own, as on sockets.
	Spin bool
	// Notifies says that Wait returns as soon as something arrives. Otherwise
	// it sleeps for short times, and whoever gets busy should Wake it.
	Notifies bool
	// KeepLostPeers says that a peer must not be removed while messages of it
	// may still be on their way, because the provider would look for them in the
	// memory that the peer had.
	KeepLostPeers bool
	// MasksMissWaiting says that a receive with Ignore finds, of the messages
	// that came before it, those with exactly its Tag only; of those that come
	// after it, it finds each that it should. Others wait for ever.
	MasksMissWaiting bool
	// KeepsOrder says that of the messages to one peer those with the same tag match
	// its receives in the order of posting (FI_ORDER_SAS).
	KeepsOrder bool
	// StallsAfterFailure says that a peer keeps, for ever, what is sent to it after
	// a message that has failed: it waits for that one.
	StallsAfterFailure bool
	// RemoteReads says that the device is a RemoteDevice that can read the memory
	// of peers, and they its. A port of efa says so from libfabric 2.0 on, where
	// the device itself does it (OptionEFAEmulatedRead).
	RemoteReads bool
	// RemoteWrites says that the device is a RemoteDevice that can write to the memory
	// of peers, and they to its.
	RemoteWrites bool
	// ImmediateSize is how many bytes of an Op's Immediate arrive.
	ImmediateSize int
	// SameHostOnly says that peers on another host cannot be reached.
	SameHostOnly bool
	// IP says that LocalAddress is a sockaddr of an IPv4 or IPv6 address.
	IP bool
}

// Registration is memory made known to a device.
type Registration interface {
	// Descriptor is to be given in Op.Descriptor for buffers within it.
	Descriptor() Descriptor
	// Close ends the registration. ErrBusy says that operations in flight use it.
	Close() error
}

// Descriptor stands for registered memory in an operation (a local memory
// descriptor, fi_mr_desc), for as long as it is registered: an operation with one whose
// registration was closed, or is of another domain, fails with ErrInvalid. The zero
// Descriptor is none.
type Descriptor uint64

// Address stands for a peer in an address vector (fi_addr_t). It means nothing
// elsewhere. The zero Address is a peer like any other.
type Address uint64

// AddressAny as Op.Peer of a receive admits any source (FI_ADDR_UNSPEC); as
// Completion.Source it says that the source is not known (FI_ADDR_NOTAVAIL).
const AddressAny Address = ^Address(0)

// Token names an operation in flight, for Cancel. It holds the index of the
// operation's slot and the slot's generation: a slot gives the same token again
// after 2^31 operations. The zero Token names none.
type Token uint64

// RemoteDevice is a Device for OpRead and OpWrite, if its Attributes say so.
type RemoteDevice interface {
	Device
	// RegisterRemote makes buf known for what Register does, for reads into it and
	// for peers that read it or write to it.
	RegisterRemote(buf []byte) (RemoteRegistration, error)
}

// RemoteRegistration is memory that peers may use.
type RemoteRegistration interface {
	Registration
	// RemoteOf is what to tell a peer about a part of it, for Op.Remote.
	RemoteOf(part []byte) (Remote, error)
}
