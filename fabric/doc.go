// Package fabric is libfabric for Go: providers, domains, endpoints, address
// vectors, queues, counters, events and memory, with owners, typed errors and a
// fixed order of closing, and without allocation where messages pass.
//
// A program that wants one endpoint with everything around it calls [Choose] and
// [OpenPort], and then [Port.Turn] for each round of posting and reading:
//
//	choice, err := fabric.Choose(fabric.Preference{Providers: []string{"efa", "tcp"}})
//	// ...
//	port, err := fabric.OpenPort(choice.Info, fabric.PortConfig{})
//	// ...
//	peer, err := port.Insert(address) // the peer's LocalAddress, however it was told
//	// ...
//	posts := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 7, Buf: message}}
//	done := make([]fabric.Completion, 64)
//	n, err := port.Turn(posts, done, 0) // posts them, and reads what is complete
//
// The package's example is a whole program, and the resources have examples of
// their own.
//
// # Resources
//
// Instead of a Port, its parts can be opened one by one, and others beside them.
// [Discover] lists what there is, as an [Info] for each way to communicate.
//
//	Resource           Opened by                       What it is (in libfabric)
//	Fabric             Info.OpenFabric                 a network (fid_fabric)
//	EventQueue         Fabric.OpenEventQueue           connections, joins and failures (fid_eq)
//	PassiveEndpoint    Fabric.OpenPassiveEndpoint      what listens for connections (fid_pep)
//	Domain             Fabric.OpenDomain               an interface or device (fid_domain)
//	Endpoint           Domain.OpenEndpoint             what sends and receives (fid_ep)
//	ScalableEndpoint   Domain.OpenScalableEndpoint     several contexts behind one address
//	Context            ScalableEndpoint.OpenSend       one direction of such an endpoint
//	SharedReceive      Domain.OpenSharedReceive        receives for several endpoints
//	SharedSend         Domain.OpenSharedSend           a send queue for several endpoints (fid_stx)
//	Alias              Endpoint.OpenAlias              an endpoint with other flags
//	CompletionQueue    Domain.OpenCompletionQueue      where operations end (fid_cq)
//	Counter            Domain.OpenCounter              how many have ended (fid_cntr)
//	AddressVector      Domain.OpenAddressVector        the peers (fid_av)
//	AddressSet         AddressVector.OpenSet           some of them, for collectives (fid_av_set)
//	Group              Endpoint.JoinCollective         membership in a collective group (fid_mc)
//	MulticastGroup     Endpoint.JoinMulticast          membership in a multicast group (fid_mc)
//	Region             Domain.RegisterMemory           registered memory (fid_mr)
//	MappedRegion       Domain.MapRemote                a peer's region, with a raw key
//	Deferred           Endpoint.Defer                  an operation that waits for a counter
//	Arena, Pool        NewArena, NewPool               memory outside the Go heap, and buffers of it
//
// # Operations
//
// An [Op] is one operation: a message, a read or write of remote memory, or an
// atomic operation. Turn of an endpoint posts a slice of them and fills in a
// slice of [Completion], in one crossing into C. It does not block: an operation
// for which there is no room is [Refused], and the program offers it again. On
// most providers nothing moves, neither sends nor receives, while nobody takes
// turns or reads the queue.
//
// # Buffers
//
// A buffer belongs to the provider from the post of an operation to its
// completion, or to Close of the endpoint; that of an injected one is the
// program's again when Turn returns. Go memory is pinned meanwhile. What stays
// where it is, such as an [Arena], can do without (Op.Fixed). Whether buffers
// must be registered says [Info.MemoryMode].
//
// # Concurrency
//
// Each type says who may use it at the same time. What operations pass through
// is for one goroutine at a time: an Endpoint, Context or Alias, with its
// completion queues, its address vector and that one's sets, and its groups, all
// of them together. The other resources are for any goroutine, and so are
// Port.Wake, Port.Close and CompletionQueue.Signal. But if the hints said
// OneThread, as those of Choose do, one goroutine at a time uses a domain and
// what was opened in it.
//
// # Errors
//
// Errors are of type [*Error], with libfabric's call and number, or contain such
// ([*ConnectionError], [*ChoiceError]). They are equal under errors.Is to the
// conditions of this package ([ErrAgain] to [ErrInvalid]), to net.ErrClosed, and
// to a syscall.Errno. What is known to make libfabric crash is refused as
// [ErrInvalid] with the reason; what the provider or the library at hand does not
// have is [ErrNotSupported]. The error of an operation is in its Op or its
// Completion, and never that of Turn.
//
// # Closing
//
// Every handle knows its children. Close is idempotent and refuses, with
// [ErrBusy], while a child is open; it waits for calls under way, and after it
// every call returns an error that is net.ErrClosed. No handle is closed by the
// garbage collector; [OpenHandles] and [MemoryInUse] tell tests what was left.
//
// # Allocation
//
// What is called for each operation, or to look for one, does not allocate:
// turns, reads of queues, counters and empty event queues, waits for completions
// and counters, collectives, cancelling, places in remote memory, and buffers of a
// Pool. Errors do, and so does what opens something or returns a slice.
package fabric
