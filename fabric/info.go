package fabric

import (
	"runtime"
	"strings"

	"github.com/weft-go/weft/cgo"
)

// EndpointType says how an endpoint communicates.
type EndpointType uint32

// The endpoint types.
const (
	ReliableDatagram = EndpointType(cgo.EndpointRDM)      // FI_EP_RDM
	Connected        = EndpointType(cgo.EndpointMessage)  // FI_EP_MSG
	Datagram         = EndpointType(cgo.EndpointDatagram) // FI_EP_DGRAM
)

// Capabilities are what an endpoint can do (FI_TAGGED and the like).
type Capabilities uint64

// The capabilities.
const (
	Messages        = Capabilities(cgo.CapMessage)
	TaggedMessages  = Capabilities(cgo.CapTagged)
	RemoteMemory    = Capabilities(cgo.CapRMA)
	Atomics         = Capabilities(cgo.CapAtomic)
	SourceAddress   = Capabilities(cgo.CapSource)
	DirectedReceive = Capabilities(cgo.CapDirected)
)

// MemoryMode is what a provider asks of memory and keys (FI_MR_LOCAL and the
// like); in hints, what the program can live with.
type MemoryMode int32

// The memory modes.
const (
	LocalRegistration = MemoryMode(cgo.MRLocal)
	VirtualAddresses  = MemoryMode(cgo.MRVirtualAddr)
	AllocatedMemory   = MemoryMode(cgo.MRAllocated)
	ProviderKeys      = MemoryMode(cgo.MRProviderKey)
)

// Progress says who moves operations on: the provider by itself, or the
// program by reading queues.
type Progress uint32

// The progress models.
const (
	ProgressAutomatic = Progress(cgo.ProgressAuto)
	ProgressManual    = Progress(cgo.ProgressManual)
)

// Hints say what Discover is to look for. A zero member is no wish.
type Hints struct {
	// Provider is a provider's name; its utility layers are found too ("tcp"
	// finds "tcp;ofi_rxm").
	Provider string
	// Fabric and Domain name a network and an interface or device.
	Fabric, Domain string
	// Source is the host name or address that the endpoint is to be bound to.
	Source string

	Endpoint     EndpointType
	Capabilities Capabilities
	MemoryMode   MemoryMode
	// OrderedSends asks that messages of one sender match in the order of
	// sending (FI_ORDER_SAS).
	OrderedSends bool
	// OneThread says that a domain's objects are never used at the same time
	// (FI_THREAD_DOMAIN); false asks for FI_THREAD_SAFE.
	OneThread bool
	Progress  Progress
	// InjectSize, SendQueue and ReceiveQueue are smallest acceptable sizes.
	InjectSize, SendQueue, ReceiveQueue uint64
	// AttributesOnly lists providers without looking for their devices
	// (FI_PROV_ATTR_ONLY). What it finds cannot be opened.
	AttributesOnly bool
}

// messageHints are the wishes of a [Port]: reliable datagrams with tags,
// ordered, used by one thread at a time, with every memory mode that a
// provider may insist on.
func messageHints() Hints {
	return Hints{
		Endpoint:     ReliableDatagram,
		Capabilities: Messages | TaggedMessages | SourceAddress,
		MemoryMode:   LocalRegistration | VirtualAddresses | AllocatedMemory | ProviderKeys,
		OrderedSends: true,
		OneThread:    true,
	}
}

// Info is one way to communicate that libfabric offers. It is immutable and
// may be used from any goroutine.
type Info struct {
	raw cgo.Info
	a   cgo.Attributes
}

// Discover lists what libfabric offers for the hints, in its order of
// preference. ErrNotFound says that there is nothing; libfabric says the same
// for a missing device, a container without it and a misspelt provider.
//
// Implements: int fi_getinfo(...)
func Discover(h Hints) ([]*Info, error) {
	c := cgo.Hints{
		Caps:         uint64(h.Capabilities),
		EndpointType: uint32(h.Endpoint),
		MRMode:       int32(h.MemoryMode),
		DataProgress: uint32(h.Progress),
		InjectSize:   h.InjectSize,
		TxSize:       h.SendQueue,
		RxSize:       h.ReceiveQueue,
		Provider:     h.Provider,
		Fabric:       h.Fabric,
		Domain:       h.Domain,
	}
	if h.AttributesOnly {
		c.Flags |= cgo.FlagAttrOnly
	} else {
		c.Mode = cgo.ModeContext | cgo.ModeContext2
		c.AVType = cgo.AVTable
		c.ResourceManagement = cgo.ResourcesEnabled
		c.Threading = cgo.ThreadSafe
		if h.OneThread {
			c.Threading = cgo.ThreadDomain
		}
	}
	if h.OrderedSends {
		c.TxOrder, c.RxOrder = cgo.OrderSAS, cgo.OrderSAS
	}
	if h.Source != "" {
		c.Node, c.Flags = h.Source, c.Flags|cgo.FlagSource
	}
	raw, code := cgo.GetInfo(c)
	if code != 0 {
		return nil, fail("fi_getinfo", h.Provider, int(code))
	}
	infos := make([]*Info, len(raw))
	for i, r := range raw {
		infos[i] = &Info{raw: r, a: r.Attributes()}
		// An Info is plain memory that nothing has to close in order.
		runtime.AddCleanup(infos[i], func(r cgo.Info) { r.Free() }, r)
	}
	return infos, nil
}

// Provider is the provider's name with its utility layers, "tcp;ofi_rxm".
func (i *Info) Provider() string { return i.a.Provider }

// ProviderVersion is the provider's own version.
func (i *Info) ProviderVersion() Version {
	return version(cgo.Version(i.a.ProviderVersion))
}

// Fabric is the name of the network.
func (i *Info) Fabric() string { return i.a.Fabric }

// Domain is the name of the interface or device.
func (i *Info) Domain() string { return i.a.Domain }

// Endpoint is the type of endpoint.
func (i *Info) Endpoint() EndpointType { return EndpointType(i.a.EndpointType) }

// Capabilities are those that the endpoint has.
func (i *Info) Capabilities() Capabilities { return Capabilities(i.a.Caps) }

// MemoryMode is what the provider asks for.
func (i *Info) MemoryMode() MemoryMode { return MemoryMode(i.a.MRMode) }

// Progress is the provider's model for data.
func (i *Info) Progress() Progress { return Progress(i.a.DataProgress) }

// OrderedSends says whether messages of one sender match in order.
func (i *Info) OrderedSends() bool {
	return i.a.TxOrder&i.a.RxOrder&cgo.OrderSAS != 0
}

// MaxMessage is the longest message in bytes.
func (i *Info) MaxMessage() uint64 { return i.a.MaxMessage }

// InjectSize is the longest message in bytes that can be injected.
func (i *Info) InjectSize() uint64 { return i.a.InjectSize }

// SendQueue and ReceiveQueue are how many operations the endpoint holds.
func (i *Info) SendQueue() uint64 { return i.a.TxSize }

// ReceiveQueue is how many receives the endpoint holds.
func (i *Info) ReceiveQueue() uint64 { return i.a.RxSize }

// TagBits are the bits of a tag that the provider carries, in the notation of
// mem_tag_format.
func (i *Info) TagBits() uint64 { return i.a.TagFormat }

// IP says that addresses are those of IPv4 or IPv6 sockets.
func (i *Info) IP() bool {
	switch i.a.AddressFormat {
	case cgo.FormatSocket, cgo.FormatIPv4, cgo.FormatIPv6:
		return true
	}
	return false
}

// String is libfabric's own listing of everything in it (fi_tostr).
func (i *Info) String() string {
	defer runtime.KeepAlive(i)
	return i.raw.String()
}

// core is the provider's name without utility layers.
func core(provider string) string {
	name, _, _ := strings.Cut(provider, ";")
	return name
}
