//go:build linux

package cgo

/*
#include "info.h"
*/
import "C"

import "unsafe"

// Capabilities (FI_MSG and the like).
const (
	CapMessage               uint64 = C.FI_MSG
	CapRMA                   uint64 = C.FI_RMA
	CapTagged                uint64 = C.FI_TAGGED
	CapAtomic                uint64 = C.FI_ATOMIC
	CapMulticast             uint64 = C.FI_MULTICAST
	CapCollective            uint64 = C.FI_COLLECTIVE
	CapRead                  uint64 = C.FI_READ
	CapWrite                 uint64 = C.FI_WRITE
	CapReceive               uint64 = C.FI_RECV
	CapSend                  uint64 = C.FI_SEND
	CapRemoteRead            uint64 = C.FI_REMOTE_READ
	CapRemoteWrite           uint64 = C.FI_REMOTE_WRITE
	CapMultiReceive          uint64 = C.FI_MULTI_RECV
	CapTrigger               uint64 = C.FI_TRIGGER
	CapFence                 uint64 = C.FI_FENCE
	CapUserID                uint64 = C.FI_AV_USER_ID
	CapPeer                  uint64 = C.FI_PEER
	CapTaggedDirectedReceive uint64 = C.WEFT_CAP_TAGGED_DIRECTED_RECV
	CapTaggedMultiReceive    uint64 = C.WEFT_CAP_TAGGED_MULTI_RECV
	CapHMEM                  uint64 = C.FI_HMEM
	CapExactDirectedReceive  uint64 = C.WEFT_CAP_EXACT_DIRECTED_RECV
	CapPersistent            uint64 = C.FI_RMA_PMEM
	CapSourceError           uint64 = C.FI_SOURCE_ERR
	CapLocalComm             uint64 = C.FI_LOCAL_COMM
	CapRemoteComm            uint64 = C.FI_REMOTE_COMM
	CapSharedAV              uint64 = C.FI_SHARED_AV
	CapRMAEvent              uint64 = C.FI_RMA_EVENT
	CapSource                uint64 = C.FI_SOURCE
	CapNamedReceiveContext   uint64 = C.FI_NAMED_RX_CTX
	CapDirected              uint64 = C.FI_DIRECTED_RECV

	// UnknownCaps are the capabilities above that these headers do not have;
	// some of their bits mean something else there.
	UnknownCaps uint64 = C.WEFT_UNKNOWN_CAPS
)

// Modes: what a provider asks of the program.
const (
	ModeContext           uint64 = C.FI_CONTEXT
	ModeContext2          uint64 = C.FI_CONTEXT2
	ModeMessagePrefix     uint64 = C.FI_MSG_PREFIX
	ModeAsyncVectors      uint64 = C.FI_ASYNC_IOV
	ModeReceiveImmediate  uint64 = C.FI_RX_CQ_DATA
	ModeLocalRegistration uint64 = C.WEFT_MODE_LOCAL_MR
)

// Flags of fi_getinfo.
const (
	FlagSource      uint64 = C.FI_SOURCE
	FlagNumericHost uint64 = C.FI_NUMERICHOST
	FlagAttrOnly    uint64 = C.FI_PROV_ATTR_ONLY
)

// Orders of messages and of completions.
const (
	OrderRAR       uint64 = C.FI_ORDER_RAR
	OrderRAW       uint64 = C.FI_ORDER_RAW
	OrderRAS       uint64 = C.FI_ORDER_RAS
	OrderWAR       uint64 = C.FI_ORDER_WAR
	OrderWAW       uint64 = C.FI_ORDER_WAW
	OrderWAS       uint64 = C.FI_ORDER_WAS
	OrderSAR       uint64 = C.FI_ORDER_SAR
	OrderSAW       uint64 = C.FI_ORDER_SAW
	OrderSAS       uint64 = C.FI_ORDER_SAS
	OrderStrict    uint64 = C.WEFT_ORDER_STRICT
	OrderData      uint64 = C.WEFT_ORDER_DATA
	OrderRMARAR    uint64 = C.FI_ORDER_RMA_RAR
	OrderRMARAW    uint64 = C.FI_ORDER_RMA_RAW
	OrderRMAWAR    uint64 = C.FI_ORDER_RMA_WAR
	OrderRMAWAW    uint64 = C.FI_ORDER_RMA_WAW
	OrderAtomicRAR uint64 = C.FI_ORDER_ATOMIC_RAR
	OrderAtomicRAW uint64 = C.FI_ORDER_ATOMIC_RAW
	OrderAtomicWAR uint64 = C.FI_ORDER_ATOMIC_WAR
	OrderAtomicWAW uint64 = C.FI_ORDER_ATOMIC_WAW
)

// Endpoint types, threading, progress and the other models.
const (
	EndpointRDM      uint32 = C.FI_EP_RDM
	EndpointMessage  uint32 = C.FI_EP_MSG
	EndpointDatagram uint32 = C.FI_EP_DGRAM

	ThreadSafe       uint32 = C.FI_THREAD_SAFE
	ThreadFID        uint32 = C.FI_THREAD_FID
	ThreadDomain     uint32 = C.FI_THREAD_DOMAIN
	ThreadCompletion uint32 = C.FI_THREAD_COMPLETION
	ThreadEndpoint   uint32 = C.FI_THREAD_ENDPOINT

	ProgressAuto    uint32 = C.FI_PROGRESS_AUTO
	ProgressManual  uint32 = C.FI_PROGRESS_MANUAL
	ProgressUnified uint32 = 3 // FI_PROGRESS_CONTROL_UNIFIED, which 1.x lacks

	ResourcesDisabled uint32 = C.FI_RM_DISABLED
	ResourcesEnabled  uint32 = C.FI_RM_ENABLED

	AVMap   uint32 = C.FI_AV_MAP
	AVTable uint32 = C.FI_AV_TABLE
)

// Memory registration modes.
const (
	MRBasic       int32 = C.WEFT_MR_BASIC
	MRScalable    int32 = C.WEFT_MR_SCALABLE
	MRLocal       int32 = C.FI_MR_LOCAL
	MRRaw         int32 = C.FI_MR_RAW
	MRVirtualAddr int32 = C.FI_MR_VIRT_ADDR
	MRAllocated   int32 = C.FI_MR_ALLOCATED
	MRProviderKey int32 = C.FI_MR_PROV_KEY
	MRMMUNotify   int32 = C.FI_MR_MMU_NOTIFY
	MRRMAEvent    int32 = C.FI_MR_RMA_EVENT
	MREndpoint    int32 = C.FI_MR_ENDPOINT
	MRHMEM        int32 = C.FI_MR_HMEM
	MRCollective  int32 = C.FI_MR_COLLECTIVE
)

// Formats of addresses.
const (
	FormatUnknown uint32 = C.FI_FORMAT_UNSPEC
	FormatSocket  uint32 = C.FI_SOCKADDR
	FormatIPv4    uint32 = C.FI_SOCKADDR_IN
	FormatIPv6    uint32 = C.FI_SOCKADDR_IN6
	FormatIB      uint32 = C.FI_SOCKADDR_IB
	FormatString  uint32 = C.FI_ADDR_STR
	FormatPSMX2   uint32 = C.FI_ADDR_PSMX2
	FormatIBUD    uint32 = C.FI_ADDR_IB_UD
	FormatEFA     uint32 = C.FI_ADDR_EFA
	FormatPSMX3   uint32 = C.FI_ADDR_PSMX3
	FormatOPX     uint32 = C.FI_ADDR_OPX
	FormatCXI     uint32 = C.FI_ADDR_CXI
)

// Protocols of endpoints.
const (
	ProtocolRDMACMRC uint32 = C.FI_PROTO_RDMA_CM_IB_RC
	ProtocolIWARP    uint32 = C.FI_PROTO_IWARP
	ProtocolIBUD     uint32 = C.FI_PROTO_IB_UD
	ProtocolUDP      uint32 = C.FI_PROTO_UDP
	ProtocolTCP      uint32 = C.FI_PROTO_SOCK_TCP
	ProtocolRXM      uint32 = C.FI_PROTO_RXM
	ProtocolRXD      uint32 = C.FI_PROTO_RXD
	ProtocolPSMX2    uint32 = C.FI_PROTO_PSMX2
	ProtocolShared   uint32 = C.FI_PROTO_SHM
	ProtocolMRail    uint32 = C.FI_PROTO_MRAIL
	ProtocolXRC      uint32 = C.FI_PROTO_RDMA_CM_IB_XRC
	ProtocolEFA      uint32 = C.FI_PROTO_EFA
	ProtocolPSMX3    uint32 = C.FI_PROTO_PSMX3
	ProtocolRXMTCP   uint32 = C.FI_PROTO_RXM_TCP
	ProtocolOPX      uint32 = C.FI_PROTO_OPX
	ProtocolCXI      uint32 = C.FI_PROTO_CXI
	ProtocolXNet     uint32 = C.FI_PROTO_XNET
)

// Traffic classes.
const (
	TrafficDSCP           uint32 = C.FI_TC_DSCP
	TrafficBestEffort     uint32 = C.FI_TC_BEST_EFFORT
	TrafficLowLatency     uint32 = C.FI_TC_LOW_LATENCY
	TrafficDedicated      uint32 = C.FI_TC_DEDICATED_ACCESS
	TrafficBulk           uint32 = C.FI_TC_BULK_DATA
	TrafficScavenger      uint32 = C.FI_TC_SCAVENGER
	TrafficNetworkControl uint32 = C.FI_TC_NETWORK_CTRL
)

// Buses and link states.
const (
	BusPCI uint32 = C.FI_BUS_PCI

	LinkUnknown uint32 = C.FI_LINK_UNKNOWN
	LinkDown    uint32 = C.FI_LINK_DOWN
	LinkUp      uint32 = C.FI_LINK_UP
)

// Vocabulary says which enumeration or set of bits a value is of.
type Vocabulary int

// The vocabularies (enum fi_type).
const (
	WordsEndpointType Vocabulary = C.FI_TYPE_EP_TYPE
	WordsCapabilities Vocabulary = C.FI_TYPE_CAPS
	WordsOpFlags      Vocabulary = C.FI_TYPE_OP_FLAGS
	WordsFormat       Vocabulary = C.FI_TYPE_ADDR_FORMAT
	WordsThreading    Vocabulary = C.FI_TYPE_THREADING
	WordsProgress     Vocabulary = C.FI_TYPE_PROGRESS
	WordsProtocol     Vocabulary = C.FI_TYPE_PROTOCOL
	WordsOrder        Vocabulary = C.FI_TYPE_MSG_ORDER
	WordsMode         Vocabulary = C.FI_TYPE_MODE
	WordsAVType       Vocabulary = C.FI_TYPE_AV_TYPE
	WordsMRMode       Vocabulary = C.FI_TYPE_MR_MODE
	WordsEvent        Vocabulary = C.FI_TYPE_EQ_EVENT
	WordsCompletion   Vocabulary = C.FI_TYPE_CQ_EVENT_FLAGS
	WordsOperation    Vocabulary = C.FI_TYPE_OP_TYPE
	WordsCollective   Vocabulary = C.FI_TYPE_COLLECTIVE_OP
	WordsHMEM         Vocabulary = C.FI_TYPE_HMEM_IFACE
	WordsCQFormat     Vocabulary = C.FI_TYPE_CQ_FORMAT
	WordsLogLevel     Vocabulary = C.FI_TYPE_LOG_LEVEL
)

// Text returns libfabric's words for a value, such as "FI_MSG, FI_TAGGED"; it
// is empty for a set of no bits.
//
// Implements: char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
func (v Vocabulary) Text(value uint64) string {
	var buf [2048]byte
	C.weft_value_text(C.uint64_t(value), C.int(v), (*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)))
	return untilZero(buf[:])
}

// TrafficOfDSCP returns the traffic class of a differentiated services code
// point.
//
// Implements: uint32_t fi_tc_dscp_set(uint8_t dscp)
func TrafficOfDSCP(dscp uint8) uint32 { return uint32(C.fi_tc_dscp_set(C.uint8_t(dscp))) }

// DSCP returns the code point of a traffic class that was made of one, else 0.
//
// Implements: uint8_t fi_tc_dscp_get(uint32_t tclass)
func DSCP(traffic uint32) uint8 { return uint8(C.fi_tc_dscp_get(C.uint32_t(traffic))) }
