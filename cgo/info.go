package cgo

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import "unsafe"

// Capabilities, modes and flags of fi_info, by libfabric's names.
const (
	CapMessage      uint64 = C.FI_MSG
	CapTagged       uint64 = C.FI_TAGGED
	CapRMA          uint64 = C.FI_RMA
	CapAtomic       uint64 = C.FI_ATOMIC
	CapSource       uint64 = C.FI_SOURCE
	CapDirected     uint64 = C.FI_DIRECTED_RECV
	CapSend         uint64 = C.FI_SEND
	CapReceive      uint64 = C.FI_RECV
	CapLocalComm    uint64 = C.FI_LOCAL_COMM
	CapRemoteComm   uint64 = C.FI_REMOTE_COMM
	ModeContext     uint64 = C.FI_CONTEXT
	ModeContext2    uint64 = C.FI_CONTEXT2
	OrderSAS        uint64 = C.FI_ORDER_SAS
	FlagSource      uint64 = C.FI_SOURCE
	FlagNumericHost uint64 = C.FI_NUMERICHOST
	FlagAttrOnly    uint64 = C.FI_PROV_ATTR_ONLY

	EndpointRDM      uint32 = C.FI_EP_RDM
	EndpointMessage  uint32 = C.FI_EP_MSG
	EndpointDatagram uint32 = C.FI_EP_DGRAM

	ThreadSafe   uint32 = C.FI_THREAD_SAFE
	ThreadDomain uint32 = C.FI_THREAD_DOMAIN

	ProgressAuto   uint32 = C.FI_PROGRESS_AUTO
	ProgressManual uint32 = C.FI_PROGRESS_MANUAL

	ResourcesEnabled uint32 = C.FI_RM_ENABLED
	AVTable          uint32 = C.FI_AV_TABLE

	MRLocal       int32 = C.FI_MR_LOCAL
	MRVirtualAddr int32 = C.FI_MR_VIRT_ADDR
	MRAllocated   int32 = C.FI_MR_ALLOCATED
	MRProviderKey int32 = C.FI_MR_PROV_KEY

	FormatSocket  uint32 = C.FI_SOCKADDR
	FormatIPv4    uint32 = C.FI_SOCKADDR_IN
	FormatIPv6    uint32 = C.FI_SOCKADDR_IN6
	FormatString  uint32 = C.FI_ADDR_STR
	FormatEFA     uint32 = C.FI_ADDR_EFA
	FormatUnknown uint32 = C.FI_FORMAT_UNSPEC
)

// Hints are what to ask GetInfo for; zero members are no wish.
type Hints struct {
	Caps, Mode                           uint64
	AddressFormat                        uint32
	EndpointType, Protocol               uint32
	Threading                            uint32
	ControlProgress, DataProgress        uint32
	ResourceManagement, AVType           uint32
	MRMode                               int32
	TxOrder, RxOrder                     uint64
	TxCompletionOrder, RxCompletionOrder uint64
	TxFlags, RxFlags                     uint64
	TxSize, RxSize, InjectSize           uint64
	TxVectors, RxVectors                 uint64
	MaxMessage, ImmediateSize            uint64
	Provider, Fabric, Domain             string
	Node, Service                        string
	Flags                                uint64
}

// Info is one element of what fi_getinfo returned, whole, as its own copy.
type Info struct{ p *C.struct_fi_info }

// cString copies s for C; an empty string is NULL.
func cString(s string) *C.char {
	if s == "" {
		return nil
	}
	return C.CString(s)
}

// GetInfo lists what fits the hints, best first.
//
// Implements: int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints, struct fi_info **info)
func GetInfo(h Hints) ([]Info, Code) {
	var c C.struct_weft_hints
	c.caps, c.mode = C.uint64_t(h.Caps), C.uint64_t(h.Mode)
	c.addr_format = C.uint32_t(h.AddressFormat)
	c.ep_type, c.ep_protocol = C.uint32_t(h.EndpointType), C.uint32_t(h.Protocol)
	c.threading = C.uint32_t(h.Threading)
	c.control_progress, c.data_progress = C.uint32_t(h.ControlProgress), C.uint32_t(h.DataProgress)
	c.resource_mgmt, c.av_type = C.uint32_t(h.ResourceManagement), C.uint32_t(h.AVType)
	c.mr_mode = C.int32_t(h.MRMode)
	c.tx_order, c.rx_order = C.uint64_t(h.TxOrder), C.uint64_t(h.RxOrder)
	c.tx_completion_order, c.rx_completion_order = C.uint64_t(h.TxCompletionOrder), C.uint64_t(h.RxCompletionOrder)
	c.tx_op_flags, c.rx_op_flags = C.uint64_t(h.TxFlags), C.uint64_t(h.RxFlags)
	c.tx_size, c.rx_size = C.uint64_t(h.TxSize), C.uint64_t(h.RxSize)
	c.inject_size = C.uint64_t(h.InjectSize)
	c.tx_iov_limit, c.rx_iov_limit = C.uint64_t(h.TxVectors), C.uint64_t(h.RxVectors)
	c.max_message, c.cq_data_size = C.uint64_t(h.MaxMessage), C.uint64_t(h.ImmediateSize)
	c.provider, c.fabric, c.domain = cString(h.Provider), cString(h.Fabric), cString(h.Domain)
	node, service := cString(h.Node), cString(h.Service)
	defer func() {
		for _, s := range []*C.char{c.provider, c.fabric, c.domain, node, service} {
			C.free(unsafe.Pointer(s))
		}
	}()

	var list *C.struct_fi_info
	if code := codeOf(C.weft_getinfo(&c, node, service, C.uint64_t(h.Flags), &list)); code != 0 {
		return nil, code
	}
	defer C.fi_freeinfo(list)
	var infos []Info
	for p := list; p != nil; p = p.next {
		one := C.fi_dupinfo(p)
		if one == nil {
			for _, i := range infos {
				i.Free()
			}
			return nil, Code(C.FI_ENOMEM)
		}
		infos = append(infos, Info{one})
	}
	return infos, 0
}

// Free releases the info.
//
// Implements: void fi_freeinfo(struct fi_info *info)
func (i Info) Free() { C.fi_freeinfo(i.p) }

// Duplicate returns a copy that is freed on its own.
//
// Implements: struct fi_info *fi_dupinfo(const struct fi_info *info)
func (i Info) Duplicate() Info { return Info{C.fi_dupinfo(i.p)} }

// String returns libfabric's own listing of the info.
//
// Implements: char *fi_tostr(const void *data, enum fi_type datatype)
func (i Info) String() string {
	return C.GoString(C.fi_tostr(unsafe.Pointer(i.p), C.FI_TYPE_INFO))
}

// Attributes are the members of an fi_info, by value.
type Attributes struct {
	Caps, Mode              uint64
	AddressFormat           uint32
	Source                  []byte
	Provider, Fabric        string
	ProviderVersion         uint32
	Domain, NIC             string
	EndpointType            uint32
	Protocol                uint32
	MaxMessage              uint64
	TagFormat               uint64
	TxContexts, RxContexts  uint64
	TxOrder, RxOrder        uint64
	TxSize, RxSize          uint64
	InjectSize              uint64
	TxVectors, RxVectors    uint64
	Threading               uint32
	ControlProgress         uint32
	DataProgress            uint32
	ResourceManagement      uint32
	AVType                  uint32
	MRMode                  int32
	KeySize, ImmediateSize  uint64
	MaxQueues, MaxEndpoints uint64
}

// Attributes copies the members of the info.
func (i Info) Attributes() Attributes {
	p := i.p
	a := Attributes{
		Caps: uint64(p.caps), Mode: uint64(p.mode),
		AddressFormat: uint32(p.addr_format),
	}
	if p.src_addr != nil && p.src_addrlen > 0 {
		a.Source = C.GoBytes(p.src_addr, C.int(p.src_addrlen))
	}
	if f := p.fabric_attr; f != nil {
		a.Provider, a.Fabric = C.GoString(f.prov_name), C.GoString(f.name)
		a.ProviderVersion = uint32(f.prov_version)
	}
	if e := p.ep_attr; e != nil {
		a.EndpointType, a.Protocol = uint32(e._type), uint32(e.protocol)
		a.MaxMessage, a.TagFormat = uint64(e.max_msg_size), uint64(e.mem_tag_format)
		a.TxContexts, a.RxContexts = uint64(e.tx_ctx_cnt), uint64(e.rx_ctx_cnt)
	}
	if t := p.tx_attr; t != nil {
		a.TxOrder, a.TxSize = uint64(t.msg_order), uint64(t.size)
		a.InjectSize, a.TxVectors = uint64(t.inject_size), uint64(t.iov_limit)
	}
	if r := p.rx_attr; r != nil {
		a.RxOrder, a.RxSize, a.RxVectors = uint64(r.msg_order), uint64(r.size), uint64(r.iov_limit)
	}
	if d := p.domain_attr; d != nil {
		a.Domain = C.GoString(d.name)
		a.Threading, a.ControlProgress = uint32(d.threading), uint32(d.control_progress)
		a.DataProgress = uint32(C.weft_data_progress(p))
		a.ResourceManagement, a.AVType = uint32(d.resource_mgmt), uint32(d.av_type)
		a.MRMode, a.KeySize, a.ImmediateSize = int32(d.mr_mode), uint64(d.mr_key_size), uint64(d.cq_data_size)
		a.MaxQueues, a.MaxEndpoints = uint64(d.cq_cnt), uint64(d.ep_cnt)
	}
	if n := p.nic; n != nil && n.device_attr != nil {
		a.NIC = C.GoString(n.device_attr.name)
	}
	return a
}
