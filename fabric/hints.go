package fabric

import (
	"strconv"
	"strings"

	"github.com/weft-go/weft/cgo"
)

// Hints say what Discover is to look for. A zero member is no wish, except
// where it says what it stands for. Discover does not keep the slices.
type Hints struct {
	// Provider is a provider's name; its utility layers are found too ("tcp"
	// finds "tcp;ofi_rxm"), unless it ends with a semicolon ("tcp;"). A list is
	// separated by commas, and "^" before it means all others.
	Provider string
	// Fabric names a network, and Domain an interface or device.
	Fabric, Domain string
	// Source is the host name or address that the endpoint is to be bound to,
	// Destination the one that it is to reach. One of them can be given by
	// name; for both, give SourceAddress or DestinationAddress as well.
	Source, Destination string
	// Service is the port, by number or by name, of Source or Destination, or
	// without them of the endpoint itself.
	Service string
	// NumericHost keeps Source and Destination from being looked up by name
	// (FI_NUMERICHOST).
	NumericHost bool
	// SourceAddress and DestinationAddress are addresses in AddressFormat, of the
	// endpoint itself and of the one that it is to reach.
	SourceAddress, DestinationAddress []byte
	// AddressFormat is that of all addresses. FormatSocket, or none, is the one of
	// SourceAddress or DestinationAddress, if there is one, else what the provider prefers.
	AddressFormat AddressFormat

	// Endpoint is the type of endpoint.
	Endpoint EndpointType
	// Protocol, of ProtocolVersion, is what it is to speak on the wire.
	Protocol        Protocol
	ProtocolVersion uint32
	// Capabilities are what the endpoint must be able to do.
	Capabilities Capabilities
	// SendCapabilities, ReceiveCapabilities and DomainCapabilities narrow
	// Capabilities for one direction, and for the domain.
	SendCapabilities, ReceiveCapabilities, DomainCapabilities Capabilities
	// Mode and MemoryMode are what the program can live with, of operations and of
	// memory: a provider that asks for more is not found. OperationContexts are
	// added to Mode; with AsyncVectors nothing is found, but ErrNotSupported.
	Mode       Mode
	MemoryMode MemoryMode
	// OrderedSends asks that messages of one sender match in the order of
	// sending (FI_ORDER_SAS).
	OrderedSends bool
	// SendOrder and ReceiveOrder are the order of operations; SendAfterSend is
	// added by OrderedSends. SendCompletions and ReceiveCompletions are the
	// order of completions.
	SendOrder, ReceiveOrder             Order
	SendCompletions, ReceiveCompletions Order
	// SendFlags and ReceiveFlags apply to every operation that is not posted
	// with flags of its own. They are those of Endpoint.SetOperationFlags; others belong
	// to single operations, and are ErrInvalid.
	SendFlags, ReceiveFlags OpFlags
	// OneThread says that a domain's objects are never used at the same time
	// (FI_THREAD_DOMAIN); false asks for FI_THREAD_SAFE.
	OneThread bool
	// Threading goes before OneThread where it is not zero.
	Threading Threading
	// Progress is the model for data, ControlProgress that for control
	// operations, such as connecting.
	Progress, ControlProgress Progress
	// ResourceManagement says who keeps queues from overflowing; zero means
	// ResourcesEnabled.
	ResourceManagement ResourceManagement
	// AddressVector is the type of address vector; zero means AddressTable.
	AddressVector AddressVectorType
	// TrafficClass is what the network is asked for, by the domain and its endpoints.
	TrafficClass TrafficClass

	// InjectSize, SendQueue and ReceiveQueue are smallest acceptable sizes, the
	// first in bytes, the others in operations.
	InjectSize, SendQueue, ReceiveQueue uint64
	// BufferedReceive is how many bytes of messages that nobody waits for the
	// provider is to hold.
	BufferedReceive uint64
	// SendVectors and ReceiveVectors are how many buffers a send and a receive
	// have, RemoteVectors how many pieces of remote memory an operation has.
	SendVectors, ReceiveVectors, RemoteVectors uint64
	// MaxMessage is the longest message in bytes.
	MaxMessage uint64
	// OrderedSizes are how many bytes operations may have and keep their order.
	OrderedSizes OrderedSizes
	// TagFormat is which bits of a tag are used, in the notation of
	// mem_tag_format.
	TagFormat uint64
	// SendContexts and ReceiveContexts are how many of them an endpoint has, or
	// SharedContext.
	SendContexts, ReceiveContexts uint64
	// KeySize and ImmediateSize are the bytes of a remote key and of immediate
	// data.
	KeySize, ImmediateSize uint64
	// RegionVectors is how many buffers a registration has, MaxErrorData how
	// many bytes the provider adds to an error.
	RegionVectors, MaxErrorData uint64
	// Endpoints, CompletionQueues, Counters and Regions are how many of each the domain
	// must have room for, EndpointSendContexts and EndpointReceiveContexts how many contexts
	// one scalable endpoint, SharedSends and SharedReceives how many endpoints share a
	// context: what Limits says of an Info.
	Endpoints, CompletionQueues, Counters, Regions uint64
	EndpointSendContexts, EndpointReceiveContexts  uint64
	SharedSends, SharedReceives                    uint64
	// AuthorizationKey admits to a closed group of endpoints. Its format is the
	// provider's.
	AuthorizationKey []byte

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

// bare says that the hints name a provider without utility layers.
func (h *Hints) bare() bool { return strings.HasSuffix(h.Provider, ";") }

// longestAddress bounds what is taken for an address or a key.
const longestAddress = 4096

// wrong says what is wrong with the hints, and whether it is only that nothing here
// has it.
func (h *Hints) wrong() (detail string, unknown bool) {
	all := h.Capabilities | h.SendCapabilities | h.ReceiveCapabilities | h.DomainCapabilities
	switch {
	case h.Source != "" && h.Destination != "":
		return "Source and Destination cannot both be given by name: one of them can be a SourceAddress or DestinationAddress", false
	case max(len(h.SourceAddress), len(h.DestinationAddress), len(h.AuthorizationKey)) > longestAddress:
		return "an address or a key has at most " + strconv.Itoa(longestAddress) + " bytes", false
	case h.AddressVector != 0 && h.AddressVector != AddressTable && h.AddressVector != AddressMap:
		return "there is no such type of address vectors: " + strconv.Itoa(int(h.AddressVector)), false
	case hasZero(h.Source, h.Destination, h.Service, h.Provider, h.Fabric, h.Domain):
		return zeroByte, false
	case h.SendFlags&^Sending.defaultFlags() != 0 || h.ReceiveFlags&^Receiving.defaultFlags() != 0:
		return "the flags are not all such that they can hold for every operation of the direction", false
	case h.Mode&AsyncVectors != 0:
		return "weft does not keep lists of buffers in place until completion", true
	case uint64(all)&cgo.UnknownCaps != 0:
		return "libfabric " + HeaderVersion().String() + " has no TaggedDirectedReceive, TaggedMultiReceiveBuffers and ExactDirectedReceive", true
	}
	return h.wrongAddresses(), false
}

// wrongAddresses says which address cannot be one, where a format of sockets or a provider that
// has these alone is named: sockets reads as many bytes as one has, and a domain that was opened
// with what comes of one of another family cannot be closed.
func (h *Hints) wrongAddresses() string {
	switch h.AddressFormat {
	case FormatSocket, FormatIPv4, FormatIPv6:
	case 0:
		if !hasSocketAddresses(strings.TrimSuffix(h.Provider, ";")) {
			return ""
		}
	default:
		return ""
	}
	for _, named := range []struct {
		name    string
		address []byte
	}{{"SourceAddress", h.SourceAddress}, {"DestinationAddress", h.DestinationAddress}} {
		if len(named.address) > 0 {
			if detail := wrongSocketAddress(uint32(h.AddressFormat), named.address); detail != "" {
				return named.name + ": " + detail
			}
		}
	}
	return ""
}

// format is that of the addresses, by their family where a provider with addresses of sockets is
// named: without it, tcp finds no device that reaches the one, nor an address for the endpoint.
func (h *Hints) format() AddressFormat {
	if h.AddressFormat != 0 && h.AddressFormat != FormatSocket || !hasSocketAddresses(strings.TrimSuffix(h.Provider, ";")) {
		return h.AddressFormat
	}
	switch max(len(h.SourceAddress), len(h.DestinationAddress)) {
	case sizeofIPv4:
		return FormatIPv4
	case sizeofIPv6:
		return FormatIPv6
	}
	return h.AddressFormat
}

// fits says that a domain holds as much as is asked for, which few providers look at.
func (h *Hints) fits(l Limits) bool {
	return h.Endpoints <= l.Endpoints && h.CompletionQueues <= l.CompletionQueues && h.Counters <= l.Counters &&
		(h.Regions <= l.Regions || l.Regions == 0) &&
		h.EndpointSendContexts <= l.EndpointSendContexts && h.EndpointReceiveContexts <= l.EndpointReceiveContexts &&
		h.SharedSends <= l.SharedSends && h.SharedReceives <= l.SharedReceives
}

// hasZero says that C would take a text for a shorter one.
func hasZero(texts ...string) bool {
	for _, text := range texts {
		if strings.IndexByte(text, 0) >= 0 {
			return true
		}
	}
	return false
}

const zeroByte = "a name has no zero byte"

// raw puts the hints into libfabric's terms.
func (h *Hints) raw() cgo.Hints {
	c := cgo.Hints{
		Caps: uint64(h.Capabilities), DomainCaps: uint64(h.DomainCapabilities),
		TxCaps: uint64(h.SendCapabilities), RxCaps: uint64(h.ReceiveCapabilities),
		AddressFormat: uint32(h.AddressFormat), Source: h.SourceAddress, Destination: h.DestinationAddress,
		EndpointType: uint32(h.Endpoint), Protocol: uint32(h.Protocol), ProtocolVersion: h.ProtocolVersion,
		MRMode: int32(h.MemoryMode), TrafficClass: uint32(h.TrafficClass),
		ControlProgress: uint32(h.ControlProgress), DataProgress: uint32(h.Progress),
		TxOrder: uint64(h.SendOrder), RxOrder: uint64(h.ReceiveOrder),
		TxCompletionOrder: uint64(h.SendCompletions), RxCompletionOrder: uint64(h.ReceiveCompletions),
		TxFlags: uint64(h.SendFlags), RxFlags: uint64(h.ReceiveFlags),
		TxSize: h.SendQueue, RxSize: h.ReceiveQueue, InjectSize: h.InjectSize, BufferedReceive: h.BufferedReceive,
		TxVectors: h.SendVectors, RxVectors: h.ReceiveVectors, RMAVectors: h.RemoteVectors,
		MaxMessage: h.MaxMessage, TagFormat: h.TagFormat,
		MaxOrderRAW: h.OrderedSizes.ReadAfterWrite, MaxOrderWAR: h.OrderedSizes.WriteAfterRead,
		MaxOrderWAW: h.OrderedSizes.WriteAfterWrite,
		TxContexts:  h.SendContexts, RxContexts: h.ReceiveContexts,
		KeySize: h.KeySize, ImmediateSize: h.ImmediateSize,
		RegionVectors: h.RegionVectors, MaxErrorData: h.MaxErrorData,
		MaxEndpoints: h.Endpoints, MaxQueues: h.CompletionQueues, MaxCounters: h.Counters, MaxRegions: h.Regions,
		MaxEndpointTx: h.EndpointSendContexts, MaxEndpointRx: h.EndpointReceiveContexts,
		MaxSharedTx: h.SharedSends, MaxSharedRx: h.SharedReceives,
		Provider: strings.TrimSuffix(h.Provider, ";"), Fabric: h.Fabric, Domain: h.Domain, AuthKey: h.AuthorizationKey,
		Service: h.Service,
	}
	if h.AttributesOnly {
		c.Flags |= cgo.FlagAttrOnly
	} else {
		c.Mode = uint64(h.Mode | OperationContexts)
		c.AVType = orElse(uint32(h.AddressVector), cgo.AVTable)
		c.ResourceManagement = orElse(uint32(h.ResourceManagement), cgo.ResourcesEnabled)
		threading := cgo.ThreadSafe
		if h.OneThread {
			threading = cgo.ThreadDomain
		}
		c.Threading = orElse(uint32(h.Threading), threading)
	}
	if h.OrderedSends {
		c.TxOrder |= cgo.OrderSAS
		c.RxOrder |= cgo.OrderSAS
	}
	if h.Destination != "" {
		c.Node = h.Destination
	} else if h.Source != "" || h.Service != "" {
		c.Node, c.Flags = h.Source, c.Flags|cgo.FlagSource
	}
	if h.NumericHost {
		c.Flags |= cgo.FlagNumericHost
	}
	return c
}

func orElse(value, otherwise uint32) uint32 {
	if value != 0 {
		return value
	}
	return otherwise
}
