package fabric

import "github.com/weft-go/weft/cgo"

// Capabilities are what an endpoint can do (FI_TAGGED and the like), a set of
// bits.
type Capabilities uint64

// The capabilities that a program asks for, and gets only if it does.
const (
	// Messages are sent and received (FI_MSG).
	Messages Capabilities = Capabilities(cgo.CapMessage)
	// TaggedMessages are received by their tags (FI_TAGGED).
	TaggedMessages Capabilities = Capabilities(cgo.CapTagged)
	// RemoteMemory is read and written (FI_RMA).
	RemoteMemory Capabilities = Capabilities(cgo.CapRMA)
	// Atomics change remote memory by atomic operations (FI_ATOMIC).
	Atomics Capabilities = Capabilities(cgo.CapAtomic)
	// Multicast sends to groups of endpoints (FI_MULTICAST).
	Multicast Capabilities = Capabilities(cgo.CapMulticast)
	// Collectives involve all members of a group (FI_COLLECTIVE).
	Collectives Capabilities = Capabilities(cgo.CapCollective)
	// DirectedReceive has receives take messages of one source only
	// (FI_DIRECTED_RECV).
	DirectedReceive Capabilities = Capabilities(cgo.CapDirected)
	// TaggedDirectedReceive is DirectedReceive for tagged messages alone
	// (FI_TAGGED_DIRECTED_RECV). libfabric has it from 2.0 on.
	TaggedDirectedReceive Capabilities = Capabilities(cgo.CapTaggedDirectedReceive)
	// ExactDirectedReceive says that every receive names its source
	// (FI_EXACT_DIRECTED_RECV). libfabric has it from 2.0 on.
	ExactDirectedReceive Capabilities = Capabilities(cgo.CapExactDirectedReceive)
	// MultiReceiveBuffers take several messages each (FI_MULTI_RECV).
	MultiReceiveBuffers Capabilities = Capabilities(cgo.CapMultiReceive)
	// TaggedMultiReceiveBuffers are the same for tagged messages
	// (FI_TAGGED_MULTI_RECV). libfabric has them from 2.0 on.
	TaggedMultiReceiveBuffers Capabilities = Capabilities(cgo.CapTaggedMultiReceive)
	// NamedReceiveContexts lets a peer choose the receive context
	// (FI_NAMED_RX_CTX).
	NamedReceiveContexts Capabilities = Capabilities(cgo.CapNamedReceiveContext)
	// DeviceBuffers are memory of GPUs and the like (FI_HMEM).
	DeviceBuffers Capabilities = Capabilities(cgo.CapHMEM)
	// PersistentMemory can be written remotely and committed (FI_RMA_PMEM).
	PersistentMemory Capabilities = Capabilities(cgo.CapPersistent)
	// RemoteMemoryEvents count or complete at the target (FI_RMA_EVENT).
	RemoteMemoryEvents Capabilities = Capabilities(cgo.CapRMAEvent)
	// TriggeredOperations start when a counter reaches a value (FI_TRIGGER).
	TriggeredOperations Capabilities = Capabilities(cgo.CapTrigger)
	// FencedOperations wait for those before them (FI_FENCE).
	FencedOperations Capabilities = Capabilities(cgo.CapFence)
	// PeerUserIDs are numbers of the program's own for its peers
	// (FI_AV_USER_ID).
	PeerUserIDs Capabilities = Capabilities(cgo.CapUserID)
	// PeerProviders work together on one endpoint (FI_PEER).
	PeerProviders Capabilities = Capabilities(cgo.CapPeer)
)

// The capabilities that narrow others, in the set of an Info all those that
// apply, in hints where the program does not need the rest.
const (
	CanSend      Capabilities = Capabilities(cgo.CapSend)        // FI_SEND: it can start sends
	CanReceive   Capabilities = Capabilities(cgo.CapReceive)     // FI_RECV: it can post receives
	CanRead      Capabilities = Capabilities(cgo.CapRead)        // FI_READ: it can read remote memory
	CanWrite     Capabilities = Capabilities(cgo.CapWrite)       // FI_WRITE: it can write remote memory
	CanBeRead    Capabilities = Capabilities(cgo.CapRemoteRead)  // FI_REMOTE_READ: others can read its memory
	CanBeWritten Capabilities = Capabilities(cgo.CapRemoteWrite) // FI_REMOTE_WRITE: others can write its memory
)

// The capabilities that a provider may have unasked.
const (
	// SourceAddress says that completions tell who sent (FI_SOURCE).
	SourceAddress Capabilities = Capabilities(cgo.CapSource)
	// SourceErrors says that an unknown source is an error of its own
	// (FI_SOURCE_ERR): the message was received, Err is EADDRNOTAVAIL, and
	// its Data the sender's address, for AddressVector.Insert.
	SourceErrors Capabilities = Capabilities(cgo.CapSourceError)
	// LocalPeers and RemotePeers are those on this host, and on others
	// (FI_LOCAL_COMM, FI_REMOTE_COMM).
	LocalPeers  Capabilities = Capabilities(cgo.CapLocalComm)
	RemotePeers Capabilities = Capabilities(cgo.CapRemoteComm)
	// SharedAddressVectors can be shared by processes (FI_SHARED_AV).
	SharedAddressVectors Capabilities = Capabilities(cgo.CapSharedAV)
)

// String lists the set in libfabric's words (fi_tostr).
func (c Capabilities) String() string { return words(cgo.WordsCapabilities, uint64(c)) }

// MemoryMode is what a provider asks of memory and keys (FI_MR_LOCAL and the
// like), a set of bits; in hints, what the program can live with.
type MemoryMode int32

// The memory modes.
const (
	// LocalRegistration: buffers of operations are registered (FI_MR_LOCAL).
	LocalRegistration MemoryMode = MemoryMode(cgo.MRLocal)
	// RawKeys: keys are longer than 64 bits (FI_MR_RAW).
	RawKeys MemoryMode = MemoryMode(cgo.MRRaw)
	// VirtualAddresses: remote memory is named by its address at the peer, and
	// not by its offset in the region (FI_MR_VIRT_ADDR).
	VirtualAddresses MemoryMode = MemoryMode(cgo.MRVirtualAddr)
	// AllocatedMemory: there are pages behind a region when it is registered
	// (FI_MR_ALLOCATED).
	AllocatedMemory MemoryMode = MemoryMode(cgo.MRAllocated)
	// ProviderKeys: the provider chooses the keys (FI_MR_PROV_KEY).
	ProviderKeys MemoryMode = MemoryMode(cgo.MRProviderKey)
	// PageNotices: the program says when pages appear behind a region
	// (FI_MR_MMU_NOTIFY).
	PageNotices MemoryMode = MemoryMode(cgo.MRMMUNotify)
	// CountedRegions: regions with remote events are enabled after they were
	// bound to a counter (FI_MR_RMA_EVENT).
	CountedRegions MemoryMode = MemoryMode(cgo.MRRMAEvent)
	// EndpointRegions: regions are bound to endpoints (FI_MR_ENDPOINT).
	EndpointRegions MemoryMode = MemoryMode(cgo.MREndpoint)
	// DeviceRegistration: memory of devices is registered before use
	// (FI_MR_HMEM).
	DeviceRegistration MemoryMode = MemoryMode(cgo.MRHMEM)
	// CollectiveRegistration: so are the buffers of collectives
	// (FI_MR_COLLECTIVE).
	CollectiveRegistration MemoryMode = MemoryMode(cgo.MRCollective)

	// BasicMemory and ScalableMemory are names of old for sets of the above
	// (FI_MR_BASIC, FI_MR_SCALABLE). They are deprecated; a provider may still
	// return BasicMemory beside the bits it stands for.
	BasicMemory    MemoryMode = MemoryMode(cgo.MRBasic)
	ScalableMemory MemoryMode = MemoryMode(cgo.MRScalable)
)

// String lists the set in libfabric's words (fi_tostr).
func (m MemoryMode) String() string { return words(cgo.WordsMRMode, uint64(uint32(m))) }

// Mode is what a provider asks of a program's operations (FI_CONTEXT and the
// like), a set of bits; in hints, what the program can live with.
type Mode uint64

// The modes.
const (
	// OperationContexts: memory of the program's for each operation in flight
	// (FI_CONTEXT, FI_CONTEXT2). weft always has it.
	OperationContexts Mode = Mode(cgo.ModeContext | cgo.ModeContext2)
	// MessagePrefix: room for the provider before each message, of
	// Info.PrefixSize bytes, in the buffers of sends and of receives. It counts
	// in Completion.Len and in Info.MaxMessage (FI_MSG_PREFIX).
	MessagePrefix Mode = Mode(cgo.ModeMessagePrefix)
	// AsyncVectors: lists of buffers stay in place until completion
	// (FI_ASYNC_IOV). weft cannot do that.
	AsyncVectors Mode = Mode(cgo.ModeAsyncVectors)
	// ReceiveImmediate: immediate data takes up a posted receive
	// (FI_RX_CQ_DATA).
	ReceiveImmediate Mode = Mode(cgo.ModeReceiveImmediate)
)

// String lists the set in libfabric's words (fi_tostr).
func (m Mode) String() string { return words(cgo.WordsMode, uint64(m)) }

// Order is which operations keep their order (FI_ORDER_SAS and the like), a
// set of bits. Each name has what comes later first: WriteAfterRead keeps a
// write from overtaking an earlier read. Reads, writes and sends are meant from
// one endpoint to another.
type Order uint64

// The orders.
const (
	ReadAfterRead   Order = Order(cgo.OrderRAR) // FI_ORDER_RAR
	ReadAfterWrite  Order = Order(cgo.OrderRAW) // FI_ORDER_RAW
	ReadAfterSend   Order = Order(cgo.OrderRAS) // FI_ORDER_RAS
	WriteAfterRead  Order = Order(cgo.OrderWAR) // FI_ORDER_WAR
	WriteAfterWrite Order = Order(cgo.OrderWAW) // FI_ORDER_WAW
	WriteAfterSend  Order = Order(cgo.OrderWAS) // FI_ORDER_WAS
	SendAfterRead   Order = Order(cgo.OrderSAR) // FI_ORDER_SAR
	SendAfterWrite  Order = Order(cgo.OrderSAW) // FI_ORDER_SAW
	SendAfterSend   Order = Order(cgo.OrderSAS) // FI_ORDER_SAS

	// The same for reads and writes of remote memory alone, and for atomic
	// operations alone.
	MemoryReadAfterRead   Order = Order(cgo.OrderRMARAR)    // FI_ORDER_RMA_RAR
	MemoryReadAfterWrite  Order = Order(cgo.OrderRMARAW)    // FI_ORDER_RMA_RAW
	MemoryWriteAfterRead  Order = Order(cgo.OrderRMAWAR)    // FI_ORDER_RMA_WAR
	MemoryWriteAfterWrite Order = Order(cgo.OrderRMAWAW)    // FI_ORDER_RMA_WAW
	AtomicReadAfterRead   Order = Order(cgo.OrderAtomicRAR) // FI_ORDER_ATOMIC_RAR
	AtomicReadAfterWrite  Order = Order(cgo.OrderAtomicRAW) // FI_ORDER_ATOMIC_RAW
	AtomicWriteAfterRead  Order = Order(cgo.OrderAtomicWAR) // FI_ORDER_ATOMIC_WAR
	AtomicWriteAfterWrite Order = Order(cgo.OrderAtomicWAW) // FI_ORDER_ATOMIC_WAW

	// InOrder is the order of posting, of completions (FI_ORDER_STRICT).
	InOrder Order = Order(cgo.OrderStrict)
	// DataInOrder has the bytes of a message arrive in order too
	// (FI_ORDER_DATA).
	DataInOrder Order = Order(cgo.OrderData)
)

// String lists the set in libfabric's words (fi_tostr).
func (o Order) String() string { return words(cgo.WordsOrder, uint64(o)) }

// String lists the set in libfabric's words (fi_tostr).
func (f OpFlags) String() string {
	const unsaid = CommitComplete // fi_tostr leaves it out
	switch rest := f &^ unsaid; rest {
	case f:
		return words(cgo.WordsOpFlags, uint64(f))
	case 0:
		return "FI_COMMIT_COMPLETE"
	default:
		return words(cgo.WordsOpFlags, uint64(rest)) + ", FI_COMMIT_COMPLETE"
	}
}

// words are libfabric's for a value, with "none" for a set of no bits.
func words(v cgo.Vocabulary, value uint64) string {
	if text := v.Text(value); text != "" {
		return text
	}
	if value == 0 {
		return "none"
	}
	return "unknown"
}
