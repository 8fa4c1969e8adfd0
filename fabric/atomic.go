package fabric

import (
	"reflect"
	"strconv"
	"unsafe"

	"github.com/weft-go/weft/cgo"
)

// DataType is the type of the values of an atomic operation (enum fi_datatype).
type DataType uint32

// The data types.
const (
	Int8          DataType = DataType(cgo.TypeInt8)
	Uint8         DataType = DataType(cgo.TypeUint8)
	Int16         DataType = DataType(cgo.TypeInt16)
	Uint16        DataType = DataType(cgo.TypeUint16)
	Int32         DataType = DataType(cgo.TypeInt32)
	Uint32        DataType = DataType(cgo.TypeUint32)
	Int64         DataType = DataType(cgo.TypeInt64)
	Uint64        DataType = DataType(cgo.TypeUint64)
	Float32       DataType = DataType(cgo.TypeFloat)
	Float64       DataType = DataType(cgo.TypeDouble)
	Complex64     DataType = DataType(cgo.TypeFloatComplex)
	Complex128    DataType = DataType(cgo.TypeDoubleComplex)
	LongDouble    DataType = DataType(cgo.TypeLongDouble)        // 16 bytes, no Go type
	LongDoubleCpx DataType = DataType(cgo.TypeLongDoubleComplex) // 32 bytes, no Go type
	Int128        DataType = DataType(cgo.TypeInt128)            // no Go type
	Uint128       DataType = DataType(cgo.TypeUint128)           // no Go type
)

var typeSizes = [...]uint8{
	Int8: 1, Uint8: 1, Int16: 2, Uint16: 2, Int32: 4, Uint32: 4, Int64: 8, Uint64: 8,
	Float32: 4, Float64: 8, Complex64: 8, Complex128: 16, LongDouble: 16, LongDoubleCpx: 32,
	Int128: 16, Uint128: 16,
}

// Size is the size of a value in bytes, 0 for a type that does not exist.
func (t DataType) Size() int {
	if int(t) >= len(typeSizes) {
		return 0
	}
	return int(typeSizes[t])
}

// String is libfabric's name of the type (fi_tostr).
func (t DataType) String() string { return cgo.TypeName(uint32(t)) }

// AtomicOp is what an atomic operation does (enum fi_op).
type AtomicOp uint32

// The atomic operations. Those from CompareSwap on are for OpCompare, AtomicRead
// is for OpFetch, and the others are for OpAtomic, OpAtomicInject and OpFetch.
const (
	Min                AtomicOp = AtomicOp(cgo.OpMin)
	Max                AtomicOp = AtomicOp(cgo.OpMax)
	Sum                AtomicOp = AtomicOp(cgo.OpSum)
	Product            AtomicOp = AtomicOp(cgo.OpProduct)
	LogicalOr          AtomicOp = AtomicOp(cgo.OpLogicalOr)
	LogicalAnd         AtomicOp = AtomicOp(cgo.OpLogicalAnd)
	BitOr              AtomicOp = AtomicOp(cgo.OpBitOr)
	BitAnd             AtomicOp = AtomicOp(cgo.OpBitAnd)
	LogicalXor         AtomicOp = AtomicOp(cgo.OpLogicalXor)
	BitXor             AtomicOp = AtomicOp(cgo.OpBitXor)
	AtomicRead         AtomicOp = AtomicOp(cgo.OpAtomicRead)
	AtomicWrite        AtomicOp = AtomicOp(cgo.OpAtomicWrite)
	CompareSwap        AtomicOp = AtomicOp(cgo.OpCompareSwap)        // if equal
	CompareSwapNot     AtomicOp = AtomicOp(cgo.OpCompareSwapNot)     // if not equal
	CompareSwapAtMost  AtomicOp = AtomicOp(cgo.OpCompareSwapAtMost)  // if compare <= there
	CompareSwapBelow   AtomicOp = AtomicOp(cgo.OpCompareSwapBelow)   // if compare < there
	CompareSwapAtLeast AtomicOp = AtomicOp(cgo.OpCompareSwapAtLeast) // if compare >= there
	CompareSwapAbove   AtomicOp = AtomicOp(cgo.OpCompareSwapAbove)   // if compare > there
	MaskedSwap         AtomicOp = AtomicOp(cgo.OpMaskedSwap)         // the bits that are set in compare
)

// String is libfabric's name of the operation (fi_tostr).
func (o AtomicOp) String() string { return cgo.AtomicName(uint32(o)) }

// Atomic is what an atomic operation has beyond its buffer, or buffers, which hold
// the values to combine with those at Remote. Its Result and Compare belong to
// the operation until that completes; the Atomic itself is the caller's again
// when Turn returns.
type Atomic struct {
	Type      DataType // of the values, here and there
	Operation AtomicOp // such as Sum
	// Result is where OpFetch and OpCompare put what was there before. It has as
	// many bytes as the values. Descriptors cover it, and Compare, where the
	// device needs registration.
	Result           []byte
	ResultDescriptor Descriptor
	// Compare is what OpCompare compares with. It has as many bytes as the values.
	Compare           []byte
	CompareDescriptor Descriptor
	// Count is the number of values, for OpFetch with AtomicRead and no Buf.
	Count int
}

// values is the number of values of an operation.
func (a *Atomic) values(op *Op) int {
	if n := a.length(op); n > 0 {
		return n / a.Type.Size()
	}
	return a.Count
}

// length is the number of bytes of the operation's values.
func (a *Atomic) length(op *Op) int {
	n := len(op.Buf)
	for _, b := range op.Vector {
		n += len(b)
	}
	return n
}

func (a *Atomic) wrong(op *Op) string {
	if a == nil {
		return "an atomic operation needs Atomic"
	}
	size := a.Type.Size()
	if size == 0 {
		return "there is no data type " + strconv.Itoa(int(a.Type))
	}
	whole := func(length int) bool { return length%size == 0 }
	uneven := func(length int) string {
		return strconv.Itoa(length) + " bytes are no whole number of values of " + strconv.Itoa(size) + " bytes"
	}
	for _, b := range op.Vector {
		if !whole(len(b)) {
			return uneven(len(b))
		}
	}
	length := a.length(op)
	// The bytes of the others are counted in values, since Count in bytes may be more
	// than an int holds.
	count := length / size
	if op.Kind == OpFetch && a.Operation == AtomicRead && length == 0 {
		count = a.Count
	}
	holds := func(b []byte) bool { return whole(len(b)) && len(b)/size == count }
	misfit := func(b []byte) string {
		return strconv.Itoa(len(b)) + " bytes where there are " + strconv.Itoa(count) + " values of " + strconv.Itoa(size)
	}
	switch {
	case count <= 0 || !whole(length):
		return uneven(length)
	case (op.Kind == OpFetch || op.Kind == OpCompare) && !holds(a.Result):
		return "Result has " + misfit(a.Result)
	case op.Kind == OpCompare && !holds(a.Compare):
		return "Compare has " + misfit(a.Compare)
	}
	return ""
}

// Number is a Go type that atomic operations know.
type Number interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// TypeOf is the data type of a Go type.
func TypeOf[T Number]() DataType { return kindTypes[reflect.TypeFor[T]().Kind()] }

var kindTypes = [...]DataType{
	reflect.Int8: Int8, reflect.Uint8: Uint8, reflect.Int16: Int16, reflect.Uint16: Uint16,
	reflect.Int32: Int32, reflect.Uint32: Uint32, reflect.Int64: Int64, reflect.Uint64: Uint64,
	reflect.Float32: Float32, reflect.Float64: Float64,
	reflect.Complex64: Complex64, reflect.Complex128: Complex128,
}

// BytesOf is the memory of a slice of numbers, for Op.Buf and Atomic: the same
// memory, and no copy.
func BytesOf[T Number](values []T) []byte {
	var v T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(v)))
}

// AtomicLimit says how many values one operation of an endpoint can have, or
// ErrNotSupported if it cannot do the operation on that type at all. kind is
// OpAtomic, OpFetch or OpCompare.
//
// Implements: int fi_atomicvalid(...), fi_fetch_atomicvalid(...), fi_compare_atomicvalid(...)
func (e *Endpoint) AtomicLimit(kind OpKind, t DataType, o AtomicOp) (int, error) {
	if err := e.enter(); err != nil {
		return 0, err
	}
	defer e.leave()
	if e.turn == nil {
		return 0, e.notEnabled("fi_atomicvalid")
	}
	if kind != OpAtomic && kind != OpFetch && kind != OpCompare {
		return 0, e.invalid("fi_atomicvalid", kind.String()+" is no atomic operation")
	}
	if err := e.whole("fi_atomicvalid"); err != nil {
		return 0, err
	}
	n, code := e.raw.AtomicLimit(kinds[kind].code, uint32(t), uint32(o))
	return n, fail("fi_atomicvalid", e.provider, int(code))
}

// AtomicLimit is Endpoint.AtomicLimit before there is an endpoint.
//
// Implements: int fi_query_atomic(...)
func (d *Domain) AtomicLimit(kind OpKind, t DataType, o AtomicOp) (int, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.leave()
	var flags uint64
	switch kind {
	case OpAtomic:
	case OpFetch:
		flags = cgo.QueryFetch
	case OpCompare:
		flags = cgo.QueryCompare
	default:
		return 0, d.invalid("fi_query_atomic", kind.String()+" is no atomic operation")
	}
	n, _, code := d.raw.QueryAtomic(uint32(t), uint32(o), flags)
	return n, fail("fi_query_atomic", d.provider, int(code))
}
