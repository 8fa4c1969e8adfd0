package fabric

import (
	"fmt"

	"github.com/weft-go/weft/cgo"
)

// EndpointType says how an endpoint communicates.
type EndpointType uint32

// The endpoint types.
const (
	// ReliableDatagram endpoints reach any number of peers without connections,
	// and lose nothing (FI_EP_RDM).
	ReliableDatagram EndpointType = EndpointType(cgo.EndpointRDM)
	// Connected endpoints have one peer each, to which they connect, and lose
	// nothing (FI_EP_MSG).
	Connected EndpointType = EndpointType(cgo.EndpointMessage)
	// Datagram endpoints reach any number of peers, and may lose messages or
	// change their order (FI_EP_DGRAM).
	Datagram EndpointType = EndpointType(cgo.EndpointDatagram)
)

// String is libfabric's word (fi_tostr).
func (t EndpointType) String() string { return words(cgo.WordsEndpointType, uint64(t)) }

// Protocol is what endpoints speak on the wire. Endpoints of one protocol
// understand each other, whatever their providers.
type Protocol uint32

// The protocols that providers of today speak.
const (
	ProtocolRDMACM     Protocol = Protocol(cgo.ProtocolRDMACMRC) // FI_PROTO_RDMA_CM_IB_RC
	ProtocolXRC        Protocol = Protocol(cgo.ProtocolXRC)      // FI_PROTO_RDMA_CM_IB_XRC
	ProtocolIWARP      Protocol = Protocol(cgo.ProtocolIWARP)    // FI_PROTO_IWARP
	ProtocolInfiniBand Protocol = Protocol(cgo.ProtocolIBUD)     // FI_PROTO_IB_UD
	ProtocolUDP        Protocol = Protocol(cgo.ProtocolUDP)      // FI_PROTO_UDP
	ProtocolTCP        Protocol = Protocol(cgo.ProtocolTCP)      // FI_PROTO_SOCK_TCP
	ProtocolXNet       Protocol = Protocol(cgo.ProtocolXNet)     // FI_PROTO_XNET
	ProtocolRXM        Protocol = Protocol(cgo.ProtocolRXM)      // FI_PROTO_RXM
	ProtocolRXMTCP     Protocol = Protocol(cgo.ProtocolRXMTCP)   // FI_PROTO_RXM_TCP
	ProtocolRXD        Protocol = Protocol(cgo.ProtocolRXD)      // FI_PROTO_RXD
	ProtocolMultiRail  Protocol = Protocol(cgo.ProtocolMRail)    // FI_PROTO_MRAIL
	ProtocolShared     Protocol = Protocol(cgo.ProtocolShared)   // FI_PROTO_SHM
	ProtocolEFA        Protocol = Protocol(cgo.ProtocolEFA)      // FI_PROTO_EFA
	ProtocolPSM2       Protocol = Protocol(cgo.ProtocolPSMX2)    // FI_PROTO_PSMX2
	ProtocolPSM3       Protocol = Protocol(cgo.ProtocolPSMX3)    // FI_PROTO_PSMX3
	ProtocolOmniPath   Protocol = Protocol(cgo.ProtocolOPX)      // FI_PROTO_OPX
	ProtocolSlingshot  Protocol = Protocol(cgo.ProtocolCXI)      // FI_PROTO_CXI
)

// String is libfabric's word (fi_tostr).
func (p Protocol) String() string { return words(cgo.WordsProtocol, uint64(p)) }

// AddressFormat says what the bytes of an address are.
type AddressFormat uint32

// The formats of addresses.
const (
	FormatUnspecified AddressFormat = AddressFormat(cgo.FormatUnknown) // FI_FORMAT_UNSPEC
	FormatSocket      AddressFormat = AddressFormat(cgo.FormatSocket)  // FI_SOCKADDR: IPv4 or IPv6
	FormatIPv4        AddressFormat = AddressFormat(cgo.FormatIPv4)    // FI_SOCKADDR_IN
	FormatIPv6        AddressFormat = AddressFormat(cgo.FormatIPv6)    // FI_SOCKADDR_IN6
	FormatInfiniBand  AddressFormat = AddressFormat(cgo.FormatIB)      // FI_SOCKADDR_IB
	FormatText        AddressFormat = AddressFormat(cgo.FormatString)  // FI_ADDR_STR
	FormatEFA         AddressFormat = AddressFormat(cgo.FormatEFA)     // FI_ADDR_EFA
	FormatVerbs       AddressFormat = AddressFormat(cgo.FormatIBUD)    // FI_ADDR_IB_UD
	FormatPSM2        AddressFormat = AddressFormat(cgo.FormatPSMX2)   // FI_ADDR_PSMX2
	FormatPSM3        AddressFormat = AddressFormat(cgo.FormatPSMX3)   // FI_ADDR_PSMX3
	FormatOmniPath    AddressFormat = AddressFormat(cgo.FormatOPX)     // FI_ADDR_OPX
	FormatSlingshot   AddressFormat = AddressFormat(cgo.FormatCXI)     // FI_ADDR_CXI
)

// String is libfabric's word (fi_tostr).
func (f AddressFormat) String() string { return words(cgo.WordsFormat, uint64(f)) }

// Threading says what a program does not do at the same time; the provider can
// leave out the locks for it.
type Threading uint32

// The threading models.
const (
	// ThreadSafe: anything may be used by anyone at any time (FI_THREAD_SAFE).
	ThreadSafe Threading = Threading(cgo.ThreadSafe)
	// ThreadDomain: what belongs to one domain is used by one goroutine at a
	// time (FI_THREAD_DOMAIN).
	ThreadDomain Threading = Threading(cgo.ThreadDomain)
	// ThreadCompletion: what completes on one queue or counter is
	// (FI_THREAD_COMPLETION).
	ThreadCompletion Threading = Threading(cgo.ThreadCompletion)
	// ThreadHandle and ThreadEndpoint: one handle, or one endpoint, is
	// (FI_THREAD_FID, FI_THREAD_ENDPOINT). Both are deprecated.
	ThreadHandle   Threading = Threading(cgo.ThreadFID)
	ThreadEndpoint Threading = Threading(cgo.ThreadEndpoint)
)

// String is libfabric's word (fi_tostr).
func (t Threading) String() string { return words(cgo.WordsThreading, uint64(t)) }

// Progress says who moves operations on: the provider by itself, or the
// program by reading queues.
type Progress uint32

// The progress models.
const (
	// ProgressAutomatic: the provider does, with threads or in hardware
	// (FI_PROGRESS_AUTO).
	ProgressAutomatic Progress = Progress(cgo.ProgressAuto)
	// ProgressManual: the program does, by turns and by reading queues and
	// counters (FI_PROGRESS_MANUAL).
	ProgressManual Progress = Progress(cgo.ProgressManual)
	// ProgressUnified is manual, with control and data moved on by the same
	// calls (FI_PROGRESS_CONTROL_UNIFIED). libfabric has it from 2.0 on, as a
	// model of control.
	ProgressUnified Progress = Progress(cgo.ProgressUnified)
)

// String is libfabric's word (fi_tostr).
func (p Progress) String() string { return words(cgo.WordsProgress, uint64(p)) }

// ResourceManagement says who keeps queues from overflowing.
type ResourceManagement uint32

// The models of resource management.
const (
	// ResourcesDisabled: the program does (FI_RM_DISABLED).
	ResourcesDisabled ResourceManagement = ResourceManagement(cgo.ResourcesDisabled)
	// ResourcesEnabled: the provider refuses what would not fit (FI_RM_ENABLED).
	ResourcesEnabled ResourceManagement = ResourceManagement(cgo.ResourcesEnabled)
)

var resourceManagementNames = names[ResourceManagement]{
	0: "FI_RM_UNSPEC", ResourcesDisabled: "FI_RM_DISABLED", ResourcesEnabled: "FI_RM_ENABLED",
}

// String is libfabric's name; it has no function for it.
func (r ResourceManagement) String() string { return resourceManagementNames.of(r) }

// AddressVectorType says what the addresses of an address vector are.
type AddressVectorType uint32

// The types of address vectors.
const (
	// AddressTable: indexes, from 0 in the order of insertion (FI_AV_TABLE).
	AddressTable AddressVectorType = AddressVectorType(cgo.AVTable)
	// AddressMap: numbers of the provider's (FI_AV_MAP). It is deprecated.
	AddressMap AddressVectorType = AddressVectorType(cgo.AVMap)
)

// String is libfabric's word (fi_tostr).
func (t AddressVectorType) String() string { return words(cgo.WordsAVType, uint64(t)) }

// TrafficClass asks the network for a quality of service.
type TrafficClass uint32

// The traffic classes.
const (
	TrafficBestEffort     TrafficClass = TrafficClass(cgo.TrafficBestEffort)     // FI_TC_BEST_EFFORT
	TrafficLowLatency     TrafficClass = TrafficClass(cgo.TrafficLowLatency)     // FI_TC_LOW_LATENCY
	TrafficDedicated      TrafficClass = TrafficClass(cgo.TrafficDedicated)      // FI_TC_DEDICATED_ACCESS
	TrafficBulk           TrafficClass = TrafficClass(cgo.TrafficBulk)           // FI_TC_BULK_DATA
	TrafficScavenger      TrafficClass = TrafficClass(cgo.TrafficScavenger)      // FI_TC_SCAVENGER
	TrafficNetworkControl TrafficClass = TrafficClass(cgo.TrafficNetworkControl) // FI_TC_NETWORK_CTRL
)

// TrafficOfDSCP is the class of a differentiated services code point of IP,
// 0 to 63.
//
// Implements: uint32_t fi_tc_dscp_set(...)
func TrafficOfDSCP(codePoint uint8) TrafficClass {
	return TrafficClass(cgo.TrafficOfDSCP(codePoint))
}

// DSCP is the code point of a class that was made of one.
//
// Implements: uint8_t fi_tc_dscp_get(...)
func (c TrafficClass) DSCP() (codePoint uint8, ok bool) {
	return cgo.DSCP(uint32(c)), uint32(c)&cgo.TrafficDSCP != 0
}

var trafficClassNames = names[TrafficClass]{
	0:                     "FI_TC_UNSPEC",
	TrafficBestEffort:     "FI_TC_BEST_EFFORT",
	TrafficLowLatency:     "FI_TC_LOW_LATENCY",
	TrafficDedicated:      "FI_TC_DEDICATED_ACCESS",
	TrafficBulk:           "FI_TC_BULK_DATA",
	TrafficScavenger:      "FI_TC_SCAVENGER",
	TrafficNetworkControl: "FI_TC_NETWORK_CTRL",
}

// String is libfabric's name; it has no function for it.
func (c TrafficClass) String() string {
	if codePoint, ok := c.DSCP(); ok {
		return fmt.Sprintf("DSCP %d", codePoint)
	}
	return trafficClassNames.of(c)
}
