//go:build linux

package cgo

/*
#cgo noescape weft_mr_register
#cgo noescape weft_mr_register_vector
#cgo noescape weft_mr_refresh
#include "memory_region.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Access rights of a region, by libfabric's names.
const (
	AccessRead        uint64 = C.FI_READ
	AccessWrite       uint64 = C.FI_WRITE
	AccessRemoteRead  uint64 = C.FI_REMOTE_READ
	AccessRemoteWrite uint64 = C.FI_REMOTE_WRITE
	AccessCollective  uint64 = C.FI_COLLECTIVE
)

// Flags of a registration, and the capability that device memory needs.
const (
	RegionRemoteEvents uint64 = C.FI_RMA_EVENT
	RegionPersistent   uint64 = C.FI_RMA_PMEM
	RegionDeviceOnly   uint64 = C.FI_HMEM_DEVICE_ONLY
	RegionHostMapped   uint64 = C.FI_HMEM_HOST_ALLOC
	DeviceCapability   uint64 = C.FI_HMEM
)

// Interfaces that memory of a device is allocated with.
const (
	InterfaceSystem    int32 = C.FI_HMEM_SYSTEM
	InterfaceCUDA      int32 = C.FI_HMEM_CUDA
	InterfaceROCR      int32 = C.FI_HMEM_ROCR
	InterfaceLevelZero int32 = C.FI_HMEM_ZE
	InterfaceNeuron    int32 = C.FI_HMEM_NEURON
	InterfaceSynapseAI int32 = C.FI_HMEM_SYNAPSEAI
)

// KeyUnavailable is the key of a region that has none, or not yet.
const KeyUnavailable uint64 = C.FI_KEY_NOTAVAIL

// MaxRegionBuffers is how many buffers one region can have here.
const MaxRegionBuffers = C.WEFT_REGION_BUFFERS

// RegionRequest is what to register, laid out like struct weft_region_request.
// Its addresses are numbers: the caller keeps the memory alive and in place.
type RegionRequest struct {
	Access, Offset, Key, Flags uint64
	authKey                    uintptr
	authKeySize                uint64
	Interface                  int32
	DMABufFile                 int32
	Device                     uint64
	DMABuf                     uint64 // 1: Buffers[0] is a part of DMABufFile
	DMABufOffset               uint64
	Count                      uint64
	Buffers                    [MaxRegionBuffers]Vector
}

var (
	_ [unsafe.Sizeof(RegionRequest{}) - C.sizeof_struct_weft_region_request]byte
	_ [C.sizeof_struct_weft_region_request - unsafe.Sizeof(RegionRequest{})]byte
)

func (r *RegionRequest) c() *C.struct_weft_region_request {
	return (*C.struct_weft_region_request)(unsafe.Pointer(r))
}

// RegisterVector makes several buffers one region. Only the access, offset, key,
// flags and buffers of the request count.
//
// Implements: int fi_mr_regv(struct fid_domain *domain, const struct iovec *iov, size_t count, uint64_t acs, uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
func (d Domain) RegisterVector(req *RegionRequest) (r Region, code Code) {
	code = codeOf(C.weft_mr_register_vector(d.p, req.c(), &r.p))
	return r, code
}

// RegisterAttributes makes memory a region with everything that a request can
// say. NoSystem says that the library at hand has no dmabuf.
//
// Implements: int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
func (d Domain) RegisterAttributes(req *RegionRequest, authKey []byte) (r Region, code Code) {
	var pin runtime.Pinner
	defer pin.Unpin()
	if len(authKey) > 0 {
		pin.Pin(&authKey[0])
		req.authKey, req.authKeySize = uintptr(unsafe.Pointer(&authKey[0])), uint64(len(authKey))
	}
	code = codeOf(C.weft_mr_register(d.p, req.c(), &r.p))
	return r, code
}

// BindEndpoint binds the region to an endpoint.
//
// Implements: int fi_mr_bind(struct fid_mr *mr, struct fid *bfid, uint64_t flags)
func (r Region) BindEndpoint(e Endpoint) Code {
	return codeOf(C.weft_mr_bind(r.p, &e.p.fid, 0))
}

// BindCounter lets the counter count what peers write to the region (fi_mr_bind).
func (r Region) BindCounter(c Counter) Code {
	return codeOf(C.weft_mr_bind(r.p, &c.p.fid, C.FI_REMOTE_WRITE))
}

// Enable makes a region usable that was bound.
//
// Implements: int fi_mr_enable(struct fid_mr *mr)
func (r Region) Enable() Code { return codeOf(C.weft_mr_enable(r.p)) }

// Refresh tells the provider that the pages of the buffers of req have changed.
//
// Implements: int fi_mr_refresh(struct fid_mr *mr, const struct iovec *iov, size_t count, uint64_t flags)
func (r Region) Refresh(req *RegionRequest) Code {
	return codeOf(C.weft_mr_refresh(r.p, req.c()))
}

// RawKey returns the region's base address and its key of any length.
//
// Implements: int fi_mr_raw_attr(struct fid_mr *mr, uint64_t *base_addr, uint8_t *raw_key, size_t *key_size, uint64_t flags)
func (r Region) RawKey() (base uint64, key []byte, code Code) {
	buf := make([]byte, 256)
	var b C.uint64_t
	n := C.uint64_t(len(buf))
	code = codeOf(C.weft_mr_raw_attr(r.p, &b, (*C.uint8_t)(&buf[0]), &n))
	if code != 0 {
		return 0, nil, code
	}
	return uint64(b), buf[:min(int(n), len(buf))], 0
}

// MapKey makes a raw key of a peer's a key that operations take.
//
// Implements: int fi_mr_map_raw(struct fid_domain *domain, uint64_t base_addr, uint8_t *raw_key, size_t key_size, uint64_t *key, uint64_t flags)
func (d Domain) MapKey(base uint64, raw []byte) (key uint64, code Code) {
	var k C.uint64_t
	code = codeOf(C.weft_mr_map_raw(d.p, C.uint64_t(base), (*C.uint8_t)(unsafe.SliceData(raw)), C.uint64_t(len(raw)), &k))
	return uint64(k), code
}

// UnmapKey ends the use of a key that MapKey made.
//
// Implements: int fi_mr_unmap_key(struct fid_domain *domain, uint64_t key)
func (d Domain) UnmapKey(key uint64) Code {
	return codeOf(C.weft_mr_unmap_key(d.p, C.uint64_t(key)))
}

// RegionModes is what the domain of an info asks of regions.
type RegionModes struct {
	Local, Raw, VirtualAddress, Allocated, ProviderKey, Notify bool
	RemoteEvents, Endpoint, Device, Collective                 bool
	// Buffers is the most buffers of a region, and KeySize the bytes of a key;
	// 0 where the provider does not say.
	Buffers, KeySize uint64
}

// RegionModes takes the answer out of the info.
func (i Info) RegionModes() RegionModes {
	var m C.struct_weft_region_modes
	C.weft_mr_modes(i.p, &m)
	return RegionModes{
		Local: m.local != 0, Raw: m.raw != 0, VirtualAddress: m.virtual_address != 0,
		Allocated: m.allocated != 0, ProviderKey: m.provider_key != 0, Notify: m.mmu_notify != 0,
		RemoteEvents: m.rma_event != 0, Endpoint: m.endpoint != 0, Device: m.hmem != 0,
		Collective: m.collective != 0,
		Buffers:    uint64(C.weft_mr_iov_limit(i.p)), KeySize: uint64(C.weft_mr_key_size(i.p)),
	}
}

// HasDMABuf says whether the headers and the library know dmabuf registration.
func HasDMABuf() bool { return C.weft_has_dmabuf() != 0 }

// LevelZeroDevice is the number of a level zero device.
//
// Implements: int fi_hmem_ze_device(int driver_index, int device_index)
func LevelZeroDevice(driver, device int) int {
	return int(C.weft_ze_device(C.int(driver), C.int(device)))
}
