//go:build linux

package cgo

/*
#include <stdlib.h>
#include "addresses.h"

#cgo noescape weft_av_lookup
#cgo nocallback weft_av_lookup
*/
import "C"

import "unsafe"

// NoAddress stands for no address (FI_ADDR_NOTAVAIL).
const NoAddress = ^uint64(0)

// Flags of an address vector.
const (
	FlagReadOnly uint64 = C.FI_READ
	FlagUserID   uint64 = C.FI_AV_USER_ID
	FlagTwins    uint64 = C.FI_SYMMETRIC
)

// AddressVectorConfig is struct fi_av_attr.
type AddressVectorConfig struct {
	Type           uint32
	ReceiveBits    int
	Count, PerNode uint64
	Flags          uint64
	Name           string
}

// OpenAddressVectorConfig opens an address vector.
//
// Implements: int fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context)
func (d Domain) OpenAddressVectorConfig(config AddressVectorConfig) (v AddressVector, code Code) {
	var c C.struct_weft_av_config
	c._type, c.rx_ctx_bits = C.uint32_t(config.Type), C.int32_t(config.ReceiveBits)
	c.count, c.per_node = C.uint64_t(config.Count), C.uint64_t(config.PerNode)
	c.flags, c.name = C.uint64_t(config.Flags), cString(config.Name)
	defer C.free(unsafe.Pointer(c.name))
	code = codeOf(C.weft_av_open_config(d.p, &c, &v.p))
	return v, code
}

// InsertMany adds peers, whose addresses lie behind each other in the domain's
// format. Each of results is a peer or NoAddress; the same member of errors
// says why, or is 0.
//
// Implements: int fi_av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr, uint64_t flags, void *context)
func (v AddressVector) InsertMany(addresses []byte, results []uint64, errors []int32) (inserted int, code Code) {
	ret := C.weft_av_insert_many(v.p, unsafe.Pointer(unsafe.SliceData(addresses)), C.uint64_t(len(results)),
		(*C.uint64_t)(unsafe.SliceData(results)), (*C.int32_t)(unsafe.SliceData(errors)))
	return int(max(ret, 0)), codeOf(ret)
}

// InsertService adds the peer at a node and a service.
//
// Implements: int fi_av_insertsvc(struct fid_av *av, const char *node, const char *service, fi_addr_t *fi_addr, uint64_t flags, void *context)
func (v AddressVector) InsertService(node, service string) (peer uint64, code Code) {
	n, s := C.CString(node), C.CString(service)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(s))
	var to C.uint64_t
	code = codeOf(C.weft_av_insertsvc(v.p, n, s, &to))
	return uint64(to), code
}

// InsertSymmetric adds the peers at nodes and services that count up from the
// ones given; results has nodes times services members.
//
// Implements: int fi_av_insertsym(struct fid_av *av, const char *node, size_t nodecnt, const char *service, size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
func (v AddressVector) InsertSymmetric(node string, nodes int, service string, services int, results []uint64) (inserted int, code Code) {
	n, s := C.CString(node), C.CString(service)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(s))
	ret := C.weft_av_insertsym(v.p, n, C.uint64_t(nodes), s, C.uint64_t(services), (*C.uint64_t)(unsafe.SliceData(results)))
	return int(max(ret, 0)), codeOf(ret)
}

// RemoveMany forgets peers.
//
// Implements: int fi_av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags)
func (v AddressVector) RemoveMany(peers []uint64) Code {
	return codeOf(C.weft_av_remove_many(v.p, (*C.uint64_t)(unsafe.SliceData(peers)), C.uint64_t(len(peers))))
}

// Lookup copies the address of a peer to buf, and says how long it is, which
// may be longer than buf.
//
// Implements: int fi_av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen)
func (v AddressVector) Lookup(peer uint64, buf []byte) (length int, code Code) {
	n := C.uint64_t(len(buf))
	code = codeOf(C.weft_av_lookup(v.p, C.uint64_t(peer), unsafe.Pointer(unsafe.SliceData(buf)), &n))
	return int(n), code
}

// Text puts an address, which has the domain's format and length, into words.
//
// Implements: const char *fi_av_straddr(struct fid_av *av, const void *addr, char *buf, size_t *len)
func (v AddressVector) Text(address []byte) (string, Code) {
	buf := make([]byte, 512)
	n := C.uint64_t(len(buf))
	code := codeOf(C.weft_av_straddr(v.p, unsafe.Pointer(unsafe.SliceData(address)), (*C.char)(unsafe.Pointer(&buf[0])), &n))
	if code != 0 {
		return "", code
	}
	return untilZero(buf), 0
}

// InsertAuthKey adds an authorization key.
//
// Implements: int fi_av_insert_auth_key(struct fid_av *av, const void *auth_key, size_t auth_key_size, fi_addr_t *fi_addr, uint64_t flags)
func (v AddressVector) InsertAuthKey(key []byte) (peer uint64, code Code) {
	var to C.uint64_t
	code = codeOf(C.weft_av_insert_auth_key(v.p, unsafe.Pointer(unsafe.SliceData(key)), C.uint64_t(len(key)), &to))
	return uint64(to), code
}

// LookupAuthKey copies the authorization key of a peer to buf, and says how
// long it is.
//
// Implements: int fi_av_lookup_auth_key(struct fid_av *av, fi_addr_t addr, void *auth_key, size_t *auth_key_size)
func (v AddressVector) LookupAuthKey(peer uint64, buf []byte) (length int, code Code) {
	n := C.uint64_t(len(buf))
	code = codeOf(C.weft_av_lookup_auth_key(v.p, C.uint64_t(peer), unsafe.Pointer(unsafe.SliceData(buf)), &n))
	return int(n), code
}

// SetUserID gives a peer the number that completions have as its source.
//
// Implements: int fi_av_set_user_id(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags)
func (v AddressVector) SetUserID(peer, id uint64) Code {
	return codeOf(C.weft_av_set_user_id(v.p, C.uint64_t(peer), C.uint64_t(id)))
}

// GroupAddress names a peer within a group, for libfabric 2.0 and later.
//
// Implements: fi_addr_t fi_group_addr(fi_addr_t fi_addr, uint32_t group_id)
func GroupAddress(peer uint64, group uint32) uint64 {
	return uint64(C.weft_group_addr(C.uint64_t(peer), C.uint32_t(group)))
}
