package fabric

import (
	"reflect"
	"strconv"
	"unsafe"

	"github.com/weft-go/weft/cgo"
)

// DataType is the type of the values of an atomic operation (enum fi_datatype). The
// zero DataType is none, so that a type that was forgotten is not taken for Int8.
type DataType uint32

// The data types.
const (
	Int8          DataType = 1 + DataType(cgo.TypeInt8)
	Uint8         DataType = 1 + DataType(cgo.TypeUint8)
	Int16         DataType = 1 + DataType(cgo.TypeInt16)
	Uint16        DataType = 1 + DataType(cgo.TypeUint16)
	Int32         DataType = 1 + DataType(cgo.TypeInt32)
	Uint32        DataType = 1 + DataType(cgo.TypeUint32)
	Int64         DataType = 1 + DataType(cgo.TypeInt64)
	Uint64        DataType = 1 + DataType(cgo.TypeUint64)
	Float32       DataType = 1 + DataType(cgo.TypeFloat)
	Float64       DataType = 1 + DataType(cgo.TypeDouble)
	Complex64     DataType = 1 + DataType(cgo.TypeFloatComplex)
	Complex128    DataType = 1 + DataType(cgo.TypeDoubleComplex)
	LongDouble    DataType = 1 + DataType(cgo.TypeLongDouble)        // 16 bytes, no Go type
	LongDoubleCpx DataType = 1 + DataType(cgo.TypeLongDoubleComplex) // 32 bytes, no Go type
	Int128        DataType = 1 + DataType(cgo.TypeInt128)            // no Go type
	Uint128       DataType = 1 + DataType(cgo.TypeUint128)           // no Go type
	Float16       DataType = 1 + DataType(cgo.TypeFloat16)           // no Go type; libfabric 2.0
	BFloat16      DataType = 1 + DataType(cgo.TypeBFloat16)          // no Go type; libfabric 2.0
	Float8E4M3    DataType = 1 + DataType(cgo.TypeFloat8E4M3)        // no Go type; libfabric 2.0
	Float8E5M2    DataType = 1 + DataType(cgo.TypeFloat8E5M2)        // no Go type; libfabric 2.0
)

var typeSizes = [...]uint8{
	Int8: 1, Uint8: 1, Int16: 2, Uint16: 2, Int32: 4, Uint32: 4, Int64: 8, Uint64: 8,
	Float32: 4, Float64: 8, Complex64: 8, Complex128: 16, LongDouble: 16, LongDoubleCpx: 32,
	Int128: 16, Uint128: 16, Float16: 2, BFloat16: 2, Float8E4M3: 1, Float8E5M2: 1,
}

// Size is the size of a value in bytes, 0 for a type that does not exist.
func (t DataType) Size() int {
	if int(t) >= len(typeSizes) {
		return 0
	}
	return int(typeSizes[t])
}

// String is libfabric's name of the type (fi_tostr).
func (t DataType) String() string {
	switch t {
	case 0:
		return "no data type"
	case Float16:
		return "FI_FLOAT16"
	case BFloat16:
		return "FI_BFLOAT16"
	case Float8E4M3:
		return "FI_FLOAT8_E4M3"
	case Float8E5M2:
		return "FI_FLOAT8_E5M2"
	}
	return cgo.TypeName(t.native())
}

// noType says what is wrong with a type that has no size.
func noType(t DataType) string {
	if t == 0 {
		return "it needs the Type of its values, such as Int64"
	}
	return "there is no data type " + strconv.Itoa(int(t))
}

// native is libfabric's number.
func (t DataType) native() uint32 { return uint32(t) - 1 }

// AtomicOp is what an atomic operation does (enum fi_op). The zero AtomicOp is none.
type AtomicOp uint32

// The atomic operations. Those from CompareSwap to MaskedSwap are for OpCompare,
// AtomicRead is for OpFetch, and the others are for OpAtomic, OpAtomicInject and
// OpFetch.
const (
	Min                AtomicOp = 1 + AtomicOp(cgo.OpMin)
	Max                AtomicOp = 1 + AtomicOp(cgo.OpMax)
	Sum                AtomicOp = 1 + AtomicOp(cgo.OpSum)
	Product            AtomicOp = 1 + AtomicOp(cgo.OpProduct)
	LogicalOr          AtomicOp = 1 + AtomicOp(cgo.OpLogicalOr)
	LogicalAnd         AtomicOp = 1 + AtomicOp(cgo.OpLogicalAnd)
	BitOr              AtomicOp = 1 + AtomicOp(cgo.OpBitOr)
	BitAnd             AtomicOp = 1 + AtomicOp(cgo.OpBitAnd)
	LogicalXor         AtomicOp = 1 + AtomicOp(cgo.OpLogicalXor)
	BitXor             AtomicOp = 1 + AtomicOp(cgo.OpBitXor)
	AtomicRead         AtomicOp = 1 + AtomicOp(cgo.OpAtomicRead)
	AtomicWrite        AtomicOp = 1 + AtomicOp(cgo.OpAtomicWrite)
	CompareSwap        AtomicOp = 1 + AtomicOp(cgo.OpCompareSwap)        // if equal
	CompareSwapNot     AtomicOp = 1 + AtomicOp(cgo.OpCompareSwapNot)     // if not equal
	CompareSwapAtMost  AtomicOp = 1 + AtomicOp(cgo.OpCompareSwapAtMost)  // if compare <= there
	CompareSwapBelow   AtomicOp = 1 + AtomicOp(cgo.OpCompareSwapBelow)   // if compare < there
	CompareSwapAtLeast AtomicOp = 1 + AtomicOp(cgo.OpCompareSwapAtLeast) // if compare >= there
	CompareSwapAbove   AtomicOp = 1 + AtomicOp(cgo.OpCompareSwapAbove)   // if compare > there
	MaskedSwap         AtomicOp = 1 + AtomicOp(cgo.OpMaskedSwap)         // the bits that are set in compare
	Difference         AtomicOp = 1 + AtomicOp(cgo.OpDifference)         // there - here; libfabric 2.0
)

// String is libfabric's name of the operation (fi_tostr).
func (o AtomicOp) String() string {
	switch o {
	case 0:
		return "no atomic operation"
	case Difference:
		return "FI_DIFF"
	}
	return cgo.AtomicName(o.native())
}

// native is libfabric's number.
func (o AtomicOp) native() uint32 { return uint32(o) - 1 }

// combines says that an operation makes one value of two, as reductions do.
func (o AtomicOp) combines() bool { return o >= Min && o <= BitXor }

// noCombination says what is wrong with an operation that does not.
func noCombination(o AtomicOp) string {
	if o == 0 {
		return "it needs an Operation, such as Sum"
	}
	return "the operation " + o.String() + " does not combine values"
}

// Atomic is what an atomic operation has beyond its buffer, or buffers, which hold
// the values to combine with those at Remote. Its Result and Compare belong to
// the operation until that completes; the Atomic itself is the caller's again
// when Turn returns.
type Atomic struct {
	// Type is that of the values, here and there, and Operation what becomes of
	// them. Both must be given. What the endpoint's AtomicLimit does not support is
	// refused with ErrNotSupported, and more values than it says with ErrInvalid.
	Type      DataType
	Operation AtomicOp
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
	if n := op.length(); n > 0 {
		return n / a.Type.Size()
	}
	return a.Count
}

func (a *Atomic) wrong(op *Op) string {
	if a == nil {
		return "an atomic operation needs Atomic"
	}
	size := a.Type.Size()
	switch {
	case size == 0:
		return noType(a.Type)
	case a.Operation == 0:
		return "it needs an Operation, such as Sum"
	case a.Operation > Difference:
		return "there is no atomic operation " + strconv.Itoa(int(a.Operation))
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
	length := op.length()
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
	if len(op.Remotes) > 0 {
		return op.wrongRemotes(uint64(count)*uint64(size), uint64(size))
	}
	return op.Remote.wrong(uint64(count) * uint64(size))
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
