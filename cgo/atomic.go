//go:build linux

package cgo

/*
#include "shim.h"

// What 2.0 added, by the numbers that it has there.
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(2, 0))
#define WEFT_FLOAT16 FI_FLOAT16
#define WEFT_BFLOAT16 FI_BFLOAT16
#define WEFT_FLOAT8_E4M3 FI_FLOAT8_E4M3
#define WEFT_FLOAT8_E5M2 FI_FLOAT8_E5M2
#define WEFT_DIFF FI_DIFF
#else
#define WEFT_FLOAT16 16
#define WEFT_BFLOAT16 17
#define WEFT_FLOAT8_E4M3 18
#define WEFT_FLOAT8_E5M2 19
#define WEFT_DIFF 19
#endif

static int weft_atomic_limit(struct fid_ep *ep, uint32_t kind, uint32_t type,
			     uint32_t op, uint64_t *limit)
{
	size_t n = 0;
	int ret;

	if (!ep->atomic)
		return -FI_ENOSYS;
	switch (kind) {
	case WEFT_ATOMIC:
		ret = fi_atomicvalid(ep, (enum fi_datatype)type, (enum fi_op)op, &n);
		break;
	case WEFT_FETCH:
		ret = fi_fetch_atomicvalid(ep, (enum fi_datatype)type, (enum fi_op)op, &n);
		break;
	default:
		ret = fi_compare_atomicvalid(ep, (enum fi_datatype)type, (enum fi_op)op, &n);
	}
	*limit = n;
	return ret;
}

static int weft_query_atomic(struct fid_domain *domain, uint32_t type,
			     uint32_t op, uint64_t flags, uint64_t *count,
			     uint64_t *size)
{
	struct fi_atomic_attr attr = { 0 };
	int ret = fi_query_atomic(domain, (enum fi_datatype)type, (enum fi_op)op,
				  &attr, flags);

	*count = attr.count;
	*size = attr.size;
	return ret;
}

static void weft_type_name(uint32_t type, char *buf, size_t len)
{
	enum fi_datatype t = (enum fi_datatype)type;

	fi_tostr_r(buf, len, &t, FI_TYPE_ATOMIC_TYPE);
}

static void weft_atomic_name(uint32_t op, char *buf, size_t len)
{
	enum fi_op o = (enum fi_op)op;

	fi_tostr_r(buf, len, &o, FI_TYPE_ATOMIC_OP);
}
*/
import "C"

// Data types of atomic operations.
const (
	TypeInt8              uint32 = C.FI_INT8
	TypeUint8             uint32 = C.FI_UINT8
	TypeInt16             uint32 = C.FI_INT16
	TypeUint16            uint32 = C.FI_UINT16
	TypeInt32             uint32 = C.FI_INT32
	TypeUint32            uint32 = C.FI_UINT32
	TypeInt64             uint32 = C.FI_INT64
	TypeUint64            uint32 = C.FI_UINT64
	TypeFloat             uint32 = C.FI_FLOAT
	TypeDouble            uint32 = C.FI_DOUBLE
	TypeFloatComplex      uint32 = C.FI_FLOAT_COMPLEX
	TypeDoubleComplex     uint32 = C.FI_DOUBLE_COMPLEX
	TypeLongDouble        uint32 = C.FI_LONG_DOUBLE
	TypeLongDoubleComplex uint32 = C.FI_LONG_DOUBLE_COMPLEX
	TypeInt128            uint32 = C.FI_INT128
	TypeUint128           uint32 = C.FI_UINT128
	TypeFloat16           uint32 = C.WEFT_FLOAT16     // since 2.0
	TypeBFloat16          uint32 = C.WEFT_BFLOAT16    // since 2.0
	TypeFloat8E4M3        uint32 = C.WEFT_FLOAT8_E4M3 // since 2.0
	TypeFloat8E5M2        uint32 = C.WEFT_FLOAT8_E5M2 // since 2.0
)

// Atomic operations.
const (
	OpMin                uint32 = C.FI_MIN
	OpMax                uint32 = C.FI_MAX
	OpSum                uint32 = C.FI_SUM
	OpProduct            uint32 = C.FI_PROD
	OpLogicalOr          uint32 = C.FI_LOR
	OpLogicalAnd         uint32 = C.FI_LAND
	OpBitOr              uint32 = C.FI_BOR
	OpBitAnd             uint32 = C.FI_BAND
	OpLogicalXor         uint32 = C.FI_LXOR
	OpBitXor             uint32 = C.FI_BXOR
	OpAtomicRead         uint32 = C.FI_ATOMIC_READ
	OpAtomicWrite        uint32 = C.FI_ATOMIC_WRITE
	OpCompareSwap        uint32 = C.FI_CSWAP
	OpCompareSwapNot     uint32 = C.FI_CSWAP_NE
	OpCompareSwapAtMost  uint32 = C.FI_CSWAP_LE
	OpCompareSwapBelow   uint32 = C.FI_CSWAP_LT
	OpCompareSwapAtLeast uint32 = C.FI_CSWAP_GE
	OpCompareSwapAbove   uint32 = C.FI_CSWAP_GT
	OpMaskedSwap         uint32 = C.FI_MSWAP
	OpDifference         uint32 = C.WEFT_DIFF // since 2.0
)

// AtomicLimit says how many values an atomic operation can have; the kind is
// KindAtomic, KindFetch or KindCompare.
//
// Implements: int fi_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
// Implements: int fi_fetch_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
// Implements: int fi_compare_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
func (e Endpoint) AtomicLimit(kind, datatype, op uint32) (int, Code) {
	var n C.uint64_t
	code := codeOf(C.weft_atomic_limit(e.p, C.uint32_t(kind), C.uint32_t(datatype), C.uint32_t(op), &n))
	return int(n), code
}

// Flags of QueryAtomic.
const (
	QueryFetch   uint64 = C.FI_FETCH_ATOMIC
	QueryCompare uint64 = C.FI_COMPARE_ATOMIC
)

// QueryAtomic says how many values an atomic operation can have, and their size.
//
// Implements: int fi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
func (d Domain) QueryAtomic(datatype, op uint32, flags uint64) (count, size int, code Code) {
	var n, bytes C.uint64_t
	code = codeOf(C.weft_query_atomic(d.p, C.uint32_t(datatype), C.uint32_t(op), C.uint64_t(flags), &n, &bytes))
	return int(n), int(bytes), code
}

// TypeName is libfabric's name of a data type.
//
// Implements: char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
func TypeName(datatype uint32) string {
	var buf [64]C.char
	C.weft_type_name(C.uint32_t(datatype), &buf[0], C.size_t(len(buf)))
	return C.GoString(&buf[0])
}

// AtomicName is libfabric's name of an atomic operation.
func AtomicName(op uint32) string {
	var buf [64]C.char
	C.weft_atomic_name(C.uint32_t(op), &buf[0], C.size_t(len(buf)))
	return C.GoString(&buf[0])
}
