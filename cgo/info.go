//go:build linux

package cgo

/*
#include <stdlib.h>
#include "info.h"
*/
import "C"

import "unsafe"

// Info is one element of what fi_getinfo returned, whole, as its own copy.
type Info struct{ p *C.struct_fi_info }

// Free releases the info.
//
// Implements: void fi_freeinfo(struct fi_info *info)
func (i Info) Free() { C.fi_freeinfo(i.p) }

// Duplicate returns a copy that is freed on its own.
//
// Implements: struct fi_info *fi_dupinfo(const struct fi_info *info)
func (i Info) Duplicate() (Info, Code) {
	p := C.fi_dupinfo(i.p)
	if p == nil {
		return Info{}, Code(C.FI_ENOMEM)
	}
	return Info{p}, 0
}

// String returns libfabric's own listing of the info.
//
// Implements: char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
func (i Info) String() string {
	// libfabric itself uses 8 KiB where it has the buffer.
	buf := make([]byte, 16<<10)
	C.fi_tostr_r((*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)), unsafe.Pointer(i.p), C.FI_TYPE_INFO)
	return untilZero(buf)
}

func untilZero(buf []byte) string {
	for i, b := range buf {
		if b == 0 {
			return string(buf[:i])
		}
	}
	return string(buf)
}

// Attributes are the members of an fi_info, by value.
type Attributes struct {
	Caps, Mode                    uint64
	AddressFormat                 uint32
	Source, Destination           []byte
	Provider, Fabric              string
	ProviderVersion, APIVersion   uint32
	EndpointType                  uint32
	Protocol, ProtocolVersion     uint32
	MaxMessage, PrefixSize        uint64
	MaxOrderRAW, MaxOrderWAR      uint64
	MaxOrderWAW                   uint64
	TagFormat                     uint64
	TxContexts, RxContexts        uint64
	AuthKey                       []byte
	TxCaps, TxMode, TxFlags       uint64
	TxOrder, TxCompletionOrder    uint64
	TxSize, InjectSize            uint64
	TxVectors, RMAVectors         uint64
	TxTrafficClass                uint32
	RxCaps, RxMode, RxFlags       uint64
	RxOrder, RxCompletionOrder    uint64
	RxSize, RxVectors             uint64
	BufferedReceive               uint64
	Domain                        string
	Threading                     uint32
	ControlProgress, DataProgress uint32
	ResourceManagement, AVType    uint32
	MRMode                        int32
	KeySize, ImmediateSize        uint64
	MaxQueues, MaxEndpoints       uint64
	MaxTxContexts, MaxRxContexts  uint64
	MaxEndpointTx, MaxEndpointRx  uint64
	MaxSharedTx, MaxSharedRx      uint64
	MaxCounters, MaxRegions       uint64
	RegionVectors, MaxErrorData   uint64
	DomainCaps, DomainMode        uint64
	DomainAuthKey                 []byte
	TrafficClass                  uint32
	MaxAuthKeys                   uint64
	MaxGroup                      uint32
	HasNIC                        bool
	Device                        Device
	Bus                           Bus
	Link                          Link
}

// Device is struct fi_device_attr.
type Device struct{ Name, ID, Version, Vendor, Driver, Firmware string }

// Bus is struct fi_bus_attr.
type Bus struct {
	Type                  uint32
	Domain                uint16
	Bus, Device, Function uint8
}

// Link is struct fi_link_attr.
type Link struct {
	Address    string
	MTU, Speed uint64
	State      uint32
	Network    string
}

func goBytes(p unsafe.Pointer, n C.size_t) []byte {
	// What is longer than this is no address and no key, but FI_AV_AUTH_KEY.
	if p == nil || n == 0 || n > 1<<20 {
		return nil
	}
	return C.GoBytes(p, C.int(n))
}

// Attributes copies the members of the info.
func (i Info) Attributes() Attributes {
	p := i.p
	a := Attributes{
		Caps: uint64(p.caps), Mode: uint64(p.mode), AddressFormat: uint32(p.addr_format),
		Source: goBytes(p.src_addr, p.src_addrlen), Destination: goBytes(p.dest_addr, p.dest_addrlen),
	}
	if f := p.fabric_attr; f != nil {
		a.Provider, a.Fabric = C.GoString(f.prov_name), C.GoString(f.name)
		a.ProviderVersion, a.APIVersion = uint32(f.prov_version), uint32(f.api_version)
	}
	if e := p.ep_attr; e != nil {
		a.EndpointType = uint32(e._type)
		a.Protocol, a.ProtocolVersion = uint32(e.protocol), uint32(e.protocol_version)
		a.MaxMessage, a.PrefixSize = uint64(e.max_msg_size), uint64(e.msg_prefix_size)
		a.MaxOrderRAW, a.MaxOrderWAR = uint64(e.max_order_raw_size), uint64(e.max_order_war_size)
		a.MaxOrderWAW, a.TagFormat = uint64(e.max_order_waw_size), uint64(e.mem_tag_format)
		a.TxContexts, a.RxContexts = uint64(e.tx_ctx_cnt), uint64(e.rx_ctx_cnt)
		a.AuthKey = goBytes(unsafe.Pointer(e.auth_key), e.auth_key_size)
	}
	if t := p.tx_attr; t != nil {
		a.TxCaps, a.TxMode, a.TxFlags = uint64(t.caps), uint64(t.mode), uint64(t.op_flags)
		a.TxOrder, a.TxCompletionOrder = uint64(t.msg_order), uint64(t.comp_order)
		a.TxSize, a.InjectSize = uint64(t.size), uint64(t.inject_size)
		a.TxVectors, a.RMAVectors = uint64(t.iov_limit), uint64(t.rma_iov_limit)
		a.TxTrafficClass = uint32(t.tclass)
	}
	if r := p.rx_attr; r != nil {
		a.RxCaps, a.RxMode, a.RxFlags = uint64(r.caps), uint64(r.mode), uint64(r.op_flags)
		a.RxOrder, a.RxCompletionOrder = uint64(r.msg_order), uint64(r.comp_order)
		a.RxSize, a.RxVectors = uint64(r.size), uint64(r.iov_limit)
		a.BufferedReceive = uint64(r.total_buffered_recv)
	}
	if p.domain_attr != nil {
		a.domain(p)
	}
	if n := p.nic; n != nil {
		a.HasNIC = true
		a.nic(n)
	}
	return a
}

func (a *Attributes) domain(p *C.struct_fi_info) {
	d := p.domain_attr
	var newer C.struct_weft_newer
	C.weft_newer(p, &newer)
	a.Domain = C.GoString(d.name)
	a.Threading, a.ControlProgress = uint32(d.threading), uint32(d.control_progress)
	a.DataProgress = uint32(newer.data_progress)
	a.ResourceManagement, a.AVType = uint32(d.resource_mgmt), uint32(d.av_type)
	a.MRMode, a.KeySize, a.ImmediateSize = int32(d.mr_mode), uint64(d.mr_key_size), uint64(d.cq_data_size)
	a.MaxQueues, a.MaxEndpoints = uint64(d.cq_cnt), uint64(d.ep_cnt)
	a.MaxTxContexts, a.MaxRxContexts = uint64(d.tx_ctx_cnt), uint64(d.rx_ctx_cnt)
	a.MaxEndpointTx, a.MaxEndpointRx = uint64(d.max_ep_tx_ctx), uint64(d.max_ep_rx_ctx)
	a.MaxSharedTx, a.MaxSharedRx = uint64(d.max_ep_stx_ctx), uint64(d.max_ep_srx_ctx)
	a.MaxCounters, a.MaxRegions = uint64(d.cntr_cnt), uint64(d.mr_cnt)
	a.RegionVectors, a.MaxErrorData = uint64(d.mr_iov_limit), uint64(d.max_err_data)
	a.DomainCaps, a.DomainMode = uint64(d.caps), uint64(d.mode)
	a.DomainAuthKey = goBytes(unsafe.Pointer(d.auth_key), d.auth_key_size)
	a.TrafficClass = uint32(d.tclass)
	a.MaxAuthKeys, a.MaxGroup = uint64(newer.max_auth_keys), uint32(newer.max_group)
}

func (a *Attributes) nic(n *C.struct_fid_nic) {
	if d := n.device_attr; d != nil {
		a.Device = Device{
			Name: C.GoString(d.name), ID: C.GoString(d.device_id), Version: C.GoString(d.device_version),
			Vendor: C.GoString(d.vendor_id), Driver: C.GoString(d.driver), Firmware: C.GoString(d.firmware),
		}
	}
	if b := n.bus_attr; b != nil {
		a.Bus.Type = uint32(b.bus_type)
		if a.Bus.Type == BusPCI {
			pci := C.weft_nic_pci(n)
			a.Bus.Domain, a.Bus.Bus = uint16(pci.domain), uint8(pci.bus)
			a.Bus.Device, a.Bus.Function = uint8(pci.device), uint8(pci.function)
		}
	}
	if l := n.link_attr; l != nil {
		a.Link = Link{
			Address: C.GoString(l.address), MTU: uint64(l.mtu), Speed: uint64(l.speed),
			State: uint32(l.state), Network: C.GoString(l.network_type),
		}
	}
}
