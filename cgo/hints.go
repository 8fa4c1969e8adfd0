//go:build linux

package cgo

/*
#include <stdlib.h>
#include "info.h"
*/
import "C"

import "unsafe"

// Hints are what to ask GetInfo for; zero members are no wish.
type Hints struct {
	Caps, Mode                           uint64
	AddressFormat                        uint32
	EndpointType                         uint32
	Protocol, ProtocolVersion            uint32
	Threading                            uint32
	ControlProgress, DataProgress        uint32
	ResourceManagement, AVType           uint32
	MRMode                               int32
	TrafficClass                         uint32
	DomainCaps, TxCaps, RxCaps           uint64
	TxOrder, RxOrder                     uint64
	TxCompletionOrder, RxCompletionOrder uint64
	TxFlags, RxFlags                     uint64
	TxSize, RxSize                       uint64
	InjectSize, BufferedReceive          uint64
	TxVectors, RxVectors, RMAVectors     uint64
	MaxMessage                           uint64
	MaxOrderRAW, MaxOrderWAR             uint64
	MaxOrderWAW                          uint64
	TagFormat                            uint64
	TxContexts, RxContexts               uint64
	KeySize, ImmediateSize               uint64
	RegionVectors, MaxErrorData          uint64
	MaxQueues, MaxEndpoints              uint64
	MaxCounters, MaxRegions              uint64
	MaxEndpointTx, MaxEndpointRx         uint64
	MaxSharedTx, MaxSharedRx             uint64
	Provider, Fabric, Domain             string
	Source, Destination                  []byte
	AuthKey                              []byte
	Node, Service                        string
	Flags                                uint64
}

// cString copies s for C; an empty string is NULL.
func cString(s string) *C.char {
	if s == "" {
		return nil
	}
	return C.CString(s)
}

// cBytes copies b for C; empty bytes are NULL.
func cBytes(b []byte) (unsafe.Pointer, C.uint64_t) {
	if len(b) == 0 {
		return nil, 0
	}
	return C.CBytes(b), C.uint64_t(len(b))
}

// GetInfo lists what fits the hints, best first.
//
// Implements: int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints, struct fi_info **info)
// Implements: struct fi_info *fi_allocinfo(void)
func GetInfo(h Hints) ([]Info, Code) {
	hints, code := h.info()
	if code != 0 {
		return nil, code
	}
	defer hints.Free()
	node, service := cString(h.Node), cString(h.Service)
	defer C.free(unsafe.Pointer(node))
	defer C.free(unsafe.Pointer(service))
	var list *C.struct_fi_info
	if code := codeOf(C.weft_getinfo(node, service, C.uint64_t(h.Flags), hints.p, &list)); code != 0 {
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

// info puts all but Node, Service and Flags into an fi_info.
func (h *Hints) info() (Info, Code) {
	var c C.struct_weft_hints
	h.fill(&c)
	defer func() {
		for _, p := range []unsafe.Pointer{
			unsafe.Pointer(c.provider), unsafe.Pointer(c.fabric), unsafe.Pointer(c.domain),
			c.source, c.destination, c.auth_key,
		} {
			C.free(p)
		}
	}()
	var p *C.struct_fi_info
	code := codeOf(C.weft_hints_info(&c, &p))
	return Info{p}, code
}

func (h *Hints) fill(c *C.struct_weft_hints) {
	c.caps, c.mode = C.uint64_t(h.Caps), C.uint64_t(h.Mode)
	c.addr_format = C.uint32_t(h.AddressFormat)
	c.ep_type = C.uint32_t(h.EndpointType)
	c.ep_protocol, c.ep_protocol_version = C.uint32_t(h.Protocol), C.uint32_t(h.ProtocolVersion)
	c.threading = C.uint32_t(h.Threading)
	c.control_progress, c.data_progress = C.uint32_t(h.ControlProgress), C.uint32_t(h.DataProgress)
	c.resource_mgmt, c.av_type = C.uint32_t(h.ResourceManagement), C.uint32_t(h.AVType)
	c.mr_mode, c.tclass = C.int32_t(h.MRMode), C.uint32_t(h.TrafficClass)
	c.domain_caps, c.tx_caps, c.rx_caps = C.uint64_t(h.DomainCaps), C.uint64_t(h.TxCaps), C.uint64_t(h.RxCaps)
	c.tx_order, c.rx_order = C.uint64_t(h.TxOrder), C.uint64_t(h.RxOrder)
	c.tx_completion_order, c.rx_completion_order = C.uint64_t(h.TxCompletionOrder), C.uint64_t(h.RxCompletionOrder)
	c.tx_op_flags, c.rx_op_flags = C.uint64_t(h.TxFlags), C.uint64_t(h.RxFlags)
	c.tx_size, c.rx_size = C.uint64_t(h.TxSize), C.uint64_t(h.RxSize)
	c.inject_size, c.total_buffered_recv = C.uint64_t(h.InjectSize), C.uint64_t(h.BufferedReceive)
	c.tx_iov_limit, c.rx_iov_limit = C.uint64_t(h.TxVectors), C.uint64_t(h.RxVectors)
	c.rma_iov_limit = C.uint64_t(h.RMAVectors)
	c.max_message = C.uint64_t(h.MaxMessage)
	c.max_order_raw, c.max_order_war = C.uint64_t(h.MaxOrderRAW), C.uint64_t(h.MaxOrderWAR)
	c.max_order_waw, c.tag_format = C.uint64_t(h.MaxOrderWAW), C.uint64_t(h.TagFormat)
	c.tx_contexts, c.rx_contexts = C.uint64_t(h.TxContexts), C.uint64_t(h.RxContexts)
	c.mr_key_size, c.cq_data_size = C.uint64_t(h.KeySize), C.uint64_t(h.ImmediateSize)
	c.mr_iov_limit, c.max_err_data = C.uint64_t(h.RegionVectors), C.uint64_t(h.MaxErrorData)
	c.ep_cnt, c.cq_cnt = C.uint64_t(h.MaxEndpoints), C.uint64_t(h.MaxQueues)
	c.cntr_cnt, c.mr_cnt = C.uint64_t(h.MaxCounters), C.uint64_t(h.MaxRegions)
	c.max_ep_tx_ctx, c.max_ep_rx_ctx = C.uint64_t(h.MaxEndpointTx), C.uint64_t(h.MaxEndpointRx)
	c.max_ep_stx_ctx, c.max_ep_srx_ctx = C.uint64_t(h.MaxSharedTx), C.uint64_t(h.MaxSharedRx)
	c.provider, c.fabric, c.domain = cString(h.Provider), cString(h.Fabric), cString(h.Domain)
	c.source, c.source_size = cBytes(h.Source)
	c.destination, c.destination_size = cBytes(h.Destination)
	c.auth_key, c.auth_key_size = cBytes(h.AuthKey)
}
