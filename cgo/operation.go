//go:build linux

package cgo

/*
#include "shim.h"
*/
import "C"

import "unsafe"

// Kinds of operation.
//
// Implements: ssize_t fi_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, uint64_t tag, void *context)
// Implements: ssize_t fi_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr, uint64_t tag, void *context)
// Implements: ssize_t fi_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
// Implements: ssize_t fi_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest_addr, uint64_t tag, void *context)
// Implements: ssize_t fi_tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t tag)
// Implements: ssize_t fi_tinjectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr, uint64_t tag)
// Implements: ssize_t fi_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
// Implements: ssize_t fi_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
// Implements: ssize_t fi_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
// Implements: ssize_t fi_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, void *context)
// Implements: ssize_t fi_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr, void *context)
// Implements: ssize_t fi_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
// Implements: ssize_t fi_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest_addr, void *context)
// Implements: ssize_t fi_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr)
// Implements: ssize_t fi_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr)
// Implements: ssize_t fi_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, void *context)
// Implements: ssize_t fi_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr, void *context)
// Implements: ssize_t fi_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
// Implements: ssize_t fi_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
// Implements: ssize_t fi_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
// Implements: ssize_t fi_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
// Implements: ssize_t fi_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
// Implements: ssize_t fi_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
// Implements: ssize_t fi_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
// Implements: ssize_t fi_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
// Implements: ssize_t fi_inject_write(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t addr, uint64_t key)
// Implements: ssize_t fi_inject_writedata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr, uint64_t addr, uint64_t key)
// Implements: ssize_t fi_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
// Implements: ssize_t fi_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
// Implements: ssize_t fi_fetch_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
// Implements: ssize_t fi_compare_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, const struct fi_ioc *comparev, void **compare_desc, size_t compare_count, struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
// Implements: ssize_t fi_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
// Implements: ssize_t fi_inject_atomic(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
// Implements: ssize_t fi_fetch_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
// Implements: ssize_t fi_fetch_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *resultv, void **result_desc, size_t result_count, uint64_t flags)
// Implements: ssize_t fi_compare_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc, const void *compare, void *compare_desc, void *result, void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
// Implements: ssize_t fi_compare_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_ioc *comparev, void **compare_desc, size_t compare_count, struct fi_ioc *resultv, void **result_desc, size_t result_count, uint64_t flags)
const (
	KindTaggedSend    uint32 = C.WEFT_TSEND
	KindTaggedReceive uint32 = C.WEFT_TRECV
	KindTaggedInject  uint32 = C.WEFT_TINJECT
	KindSend          uint32 = C.WEFT_SEND
	KindReceive       uint32 = C.WEFT_RECV
	KindInject        uint32 = C.WEFT_INJECT
	KindRead          uint32 = C.WEFT_READ
	KindWrite         uint32 = C.WEFT_WRITE
	KindWriteInject   uint32 = C.WEFT_WRITE_INJECT
	KindAtomic        uint32 = C.WEFT_ATOMIC
	KindAtomicInject  uint32 = C.WEFT_ATOMIC_INJECT
	KindFetch         uint32 = C.WEFT_FETCH
	KindCompare       uint32 = C.WEFT_COMPARE
)

// Flags of operations and completions, by libfabric's names.
const (
	FlagImmediate        uint64 = C.FI_REMOTE_CQ_DATA
	FlagCompletion       uint64 = C.FI_COMPLETION
	FlagFence            uint64 = C.FI_FENCE
	FlagInject           uint64 = C.FI_INJECT
	FlagInjectComplete   uint64 = C.FI_INJECT_COMPLETE
	FlagTransmitComplete uint64 = C.FI_TRANSMIT_COMPLETE
	FlagDeliveryComplete uint64 = C.FI_DELIVERY_COMPLETE
	FlagMatchComplete    uint64 = C.FI_MATCH_COMPLETE
	FlagCommitComplete   uint64 = C.FI_COMMIT_COMPLETE
	FlagMultiReceive     uint64 = C.FI_MULTI_RECV
	FlagPeek             uint64 = C.FI_PEEK
	FlagClaim            uint64 = C.FI_CLAIM
	FlagDiscard          uint64 = C.FI_DISCARD
	FlagRemoteWrite      uint64 = C.FI_REMOTE_WRITE
)

// Vector is one buffer of several, laid out like struct iovec.
type Vector struct {
	Base uintptr
	Len  uint64
}

// RemoteVector is one piece of a peer's memory, laid out like struct fi_rma_iov.
type RemoteVector struct{ Address, Len, Key uint64 }

// MaxVectors is how many buffers an operation can have here.
const MaxVectors = C.WEFT_VECTORS

// Extra is what an operation has beyond a buffer, a peer and a tag, laid out
// like struct weft_extra.
type Extra struct {
	Flags, Data              uint64
	RemoteAddress, RemoteKey uint64
	Datatype, Atomic         uint32
	Compare                  uintptr
	CompareDescriptor        uintptr
	Result                   uintptr
	ResultDescriptor         uintptr
	Vectors                  uint64
	Vector                   [MaxVectors]Vector // of values, for atomic operations
	Descriptor               [MaxVectors]uintptr
	Remotes                  uint64
	Remote                   [MaxVectors]RemoteVector // in place of RemoteAddress and RemoteKey
}

// Op is one operation to post, laid out like struct weft_op. Buf is an address
// and not a pointer because the struct lives in C memory: whoever fills it in
// keeps the memory alive and in place until the operation is complete.
type Op struct {
	Kind uint32
	// 0: posted; negative: an error of libfabric; positive: posted, a receive that got so
	// many messages whose sender is gone (GuardFetches), after which nothing more ends one
	// that is not a multi-receive.
	Result     int32
	Peer       uint64
	Tag        uint64
	Ignore     uint64
	Buf        uintptr
	Len        uint64 // bytes, and values for an atomic operation
	Descriptor uintptr
	Slot       uintptr
	Token      uint64
	Extra      *Extra // in C memory; nil: the plain form of the call
}

// The two sides must agree on every layout: the compiler refuses a negative
// array size on either inequality.
var (
	_ [unsafe.Sizeof(Op{}) - C.sizeof_struct_weft_op]byte
	_ [C.sizeof_struct_weft_op - unsafe.Sizeof(Op{})]byte
	_ [unsafe.Sizeof(Extra{}) - C.sizeof_struct_weft_extra]byte
	_ [C.sizeof_struct_weft_extra - unsafe.Sizeof(Extra{})]byte
	_ [unsafe.Sizeof(RemoteVector{}) - C.sizeof_struct_fi_rma_iov]byte
	_ [C.sizeof_struct_fi_rma_iov - unsafe.Sizeof(RemoteVector{})]byte
)
