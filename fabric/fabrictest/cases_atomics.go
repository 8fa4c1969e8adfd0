package fabrictest

import (
	"bytes"
	"errors"
	"slices"
	"unsafe"

	"github.com/weft-go/weft/fabric"
)

var atomicCases = []named{
	{"int8", integers[int8]},
	{"uint8", integers[uint8]},
	{"int16", integers[int16]},
	{"uint16", integers[uint16]},
	{"int32", integers[int32]},
	{"uint32", integers[uint32]},
	{"int64", integers[int64]},
	{"uint64", integers[uint64]},
	{"float32", floats[float32]},
	{"float64", floats[float64]},
	{"complex64", func(t *trial) { everyOperation(t, arithmetic[complex64](), equality[complex64]()) }},
	{"complex128", func(t *trial) { everyOperation(t, arithmetic[complex128](), equality[complex128]()) }},
	{"other types", wideTypes},
	{"several pieces", severalAtomicPieces},
	{"not supported", lackingAtomics},
}

type integer interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64
}

type ordered interface {
	integer | ~float32 | ~float64
}

// updates says what each operation makes of a value there with one from here.
type updates[T fabric.Number] map[fabric.AtomicOp]func(there, here T) T

// swaps says when each comparing operation swaps.
type swaps[T fabric.Number] map[fabric.AtomicOp]func(compare, there T) bool

func arithmetic[T fabric.Number]() updates[T] {
	truth := func(b bool) T {
		if b {
			return 1
		}
		return 0
	}
	return updates[T]{
		fabric.Sum:         func(there, here T) T { return there + here },
		fabric.Difference:  func(there, here T) T { return there - here },
		fabric.Product:     func(there, here T) T { return there * here },
		fabric.LogicalOr:   func(there, here T) T { return truth(there != 0 || here != 0) },
		fabric.LogicalAnd:  func(there, here T) T { return truth(there != 0 && here != 0) },
		fabric.LogicalXor:  func(there, here T) T { return truth((there != 0) != (here != 0)) },
		fabric.AtomicWrite: func(_, here T) T { return here },
		fabric.AtomicRead:  func(there, _ T) T { return there },
	}
}

func equality[T fabric.Number]() swaps[T] {
	return swaps[T]{
		fabric.CompareSwap:    func(compare, there T) bool { return compare == there },
		fabric.CompareSwapNot: func(compare, there T) bool { return compare != there },
	}
}

// order adds what values with an order have.
func order[T ordered]() (updates[T], swaps[T]) {
	u, s := arithmetic[T](), equality[T]()
	u[fabric.Min] = func(there, here T) T { return min(there, here) }
	u[fabric.Max] = func(there, here T) T { return max(there, here) }
	s[fabric.CompareSwapAtMost] = func(compare, there T) bool { return compare <= there }
	s[fabric.CompareSwapBelow] = func(compare, there T) bool { return compare < there }
	s[fabric.CompareSwapAtLeast] = func(compare, there T) bool { return compare >= there }
	s[fabric.CompareSwapAbove] = func(compare, there T) bool { return compare > there }
	return u, s
}

func floats[T ~float32 | ~float64](t *trial) {
	u, s := order[T]()
	everyOperation(t, u, s)
}

func integers[T integer](t *trial) {
	u, s := order[T]()
	u[fabric.BitOr] = func(there, here T) T { return there | here }
	u[fabric.BitAnd] = func(there, here T) T { return there & here }
	u[fabric.BitXor] = func(there, here T) T { return there ^ here }
	everyOperation(t, u, s)
	t.sub(fabric.MaskedSwap.String(), func(t *trial) {
		x := newAtoms[T](t)
		x.need(t, fabric.OpCompare, fabric.MaskedSwap)
		x.compare(t, fabric.MaskedSwap, []T{0x0f}, []T{0x3c}, []T{0x35}, []T{0x37})
	})
}

// everyOperation tries those that the provider says it has with values of one
// type, and each gives what Go gives.
func everyOperation[T fabric.Number](t *trial, u updates[T], s swaps[T]) {
	x := newAtoms[T](t)
	kind, has := fabric.TypeOf[T](), 0
	for op := fabric.Min; op <= fabric.Difference; op++ {
		for _, k := range []fabric.OpKind{fabric.OpAtomic, fabric.OpAtomicInject, fabric.OpFetch, fabric.OpCompare} {
			update, swap := u[op], s[op]
			if update == nil && (k != fabric.OpCompare || swap == nil) || op == fabric.AtomicRead && k != fabric.OpFetch {
				continue
			}
			if (k == fabric.OpCompare) != (swap != nil) || !x.has(t, k, op) {
				continue
			}
			has++
			t.sub(op.String()+", "+k.String(), func(t *trial) {
				if k == fabric.OpCompare {
					x.swap(t, op, swap)
				} else {
					x.update(t, k, op, update)
				}
			})
		}
	}
	if has == 0 {
		t.need("atomics of "+kind.String(), fabric.ErrNotSupported)
	}
	idle(t, x.a, x.b)
}

// atoms is memory of b's with values of a type, at which a directs atomics.
type atoms[T fabric.Number] struct {
	a, b   *station
	kind   fabric.DataType
	there  []T
	remote fabric.Remote
}

func newAtoms[T fabric.Number](t *trial) *atoms[T] {
	t.Helper()
	x := &atoms[T]{kind: fabric.TypeOf[T]()}
	x.a, x.b = pairOf(t, fabric.Atomics)
	var memory []byte
	memory, x.remote = x.b.site.shared(t, 256)
	x.there = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), 256/x.kind.Size())
	return x
}

// has asks the provider, as an endpoint and as a domain.
func (x *atoms[T]) has(t *trial, k fabric.OpKind, op fabric.AtomicOp) bool {
	t.Helper()
	if k == fabric.OpAtomicInject {
		k = fabric.OpAtomic
	}
	limit, err := x.a.e.AtomicLimit(k, x.kind, op)
	if errors.Is(err, fabric.ErrNotSupported) {
		return false
	}
	noError(t, err)
	early, err := x.a.site.domain.AtomicLimit(k, x.kind, op)
	noError(t, err)
	isTrue(t, limit >= 1 && early >= 1, "%d values, and %d by the domain", limit, early)
	return true
}

// count is how many values an operation is tried with.
func (x *atoms[T]) count(t *trial, k fabric.OpKind, op fabric.AtomicOp) int {
	t.Helper()
	most := 3
	if k == fabric.OpAtomicInject {
		k, most = fabric.OpAtomic, max(1, min(most, int(x.a.site.info.InjectSize())/x.kind.Size()))
	}
	limit, err := x.a.e.AtomicLimit(k, x.kind, op)
	noError(t, err)
	return min(most, limit)
}

func (x *atoms[T]) need(t *trial, k fabric.OpKind, op fabric.AtomicOp) {
	t.Helper()
	_, err := x.a.e.AtomicLimit(k, x.kind, op)
	t.need(op.String()+" of "+x.kind.String(), err)
}

// update has one operation change as many values as the provider takes, of
// three, and leaves the one behind them as it is.
func (x *atoms[T]) update(t *trial, k fabric.OpKind, op fabric.AtomicOp, of func(there, here T) T) {
	t.Helper()
	count := x.count(t, k, op)
	there, here := []T{3, 0, 6}[:count], []T{2, 5, 12}[:count]
	want := make([]T, count)
	for i := range want {
		want[i] = of(there[i], here[i])
	}
	copy(x.there, append(slices.Clone(there), 77))
	before := make([]T, count)
	with := &fabric.Atomic{Type: x.kind, Operation: op}
	post := fabric.Op{Kind: k, Peer: x.a.peer, Remote: x.remote, Atomic: with, Buf: fabric.BytesOf(here)}
	switch {
	case op == fabric.AtomicRead:
		post.Buf, with.Count = nil, count
	case op == fabric.Sum && count > 1 && k != fabric.OpAtomicInject && x.a.site.info.Send().Vectors > 1:
		// In two parts.
		post.Buf, post.Vector = nil, [][]byte{fabric.BytesOf(here[:1]), fabric.BytesOf(here[1:])}
	}
	if k == fabric.OpFetch {
		with.Result = fabric.BytesOf(before)
	}
	x.a.change(t, post, func() bool { return slices.Equal(want, x.there[:count]) })
	equal(t, want, x.there[:count])
	equal(t, 77, x.there[count], "the value behind")
	if k == fabric.OpFetch {
		equal(t, there, before, "what was there")
	}
}

// change posts an atomic operation, and returns when it is done at the target: when it says so, or
// else when it can be seen there.
func (s *station) change(t *trial, op fabric.Op, seen func() bool) {
	t.Helper()
	switch op.Kind {
	case fabric.OpAtomic:
		told := op
		told.Flags = fabric.DeliveryComplete
		if told = s.post(t, told); told.Err == nil {
			s.done(t)
			return
		}
		errorIs(t, told.Err, fabric.ErrNotSupported)
		s.must(t, op)
		s.done(t)
	case fabric.OpAtomicInject:
		s.must(t, op)
	default:
		s.must(t, op)
		s.done(t)
		return
	}
	t.until("effect of the atomic", func(try int) bool {
		s.step(t, nil, try)
		return seen()
	})
}

// swap compares with values below, at and above what is there.
func (x *atoms[T]) swap(t *trial, op fabric.AtomicOp, holds func(compare, there T) bool) {
	t.Helper()
	for _, compare := range []T{4, 5, 6} {
		want := T(5)
		if holds(compare, 5) {
			want = 9
		}
		x.compare(t, op, []T{5}, []T{compare}, []T{9}, []T{want})
	}
	limit, err := x.a.e.AtomicLimit(fabric.OpCompare, x.kind, op)
	noError(t, err)
	if limit < 3 {
		return
	}
	// Several at once, each with a value to compare of its own.
	there, compare, send := []T{5, 6, 7}, []T{6, 6, 6}, []T{9, 8, 1}
	want := slices.Clone(there)
	for i := range want {
		if holds(compare[i], there[i]) {
			want[i] = send[i]
		}
	}
	x.compare(t, op, there, compare, send, want)
}

func (x *atoms[T]) compare(t *trial, op fabric.AtomicOp, there, compare, send, want []T) {
	t.Helper()
	copy(x.there, append(slices.Clone(there), 77))
	before := make([]T, len(there))
	x.a.must(t, fabric.Op{Kind: fabric.OpCompare, Peer: x.a.peer, Remote: x.remote, Buf: fabric.BytesOf(send), Atomic: &fabric.Atomic{
		Type: x.kind, Operation: op, Compare: fabric.BytesOf(compare), Result: fabric.BytesOf(before),
	}})
	x.a.done(t)
	equal(t, there, before, "what was there")
	equal(t, want, x.there[:len(want)])
	equal(t, 77, x.there[len(want)], "the value behind")
}

// Values of types that Go does not have are moved as they are: written, read back,
// and swapped for others, where the provider says that it has that.
func wideTypes(t *trial) {
	a, b := pairOf(t, fabric.Atomics)
	memory, remote := b.site.shared(t, 256)
	has := 0
	for _, kind := range []fabric.DataType{
		fabric.LongDouble, fabric.LongDoubleCpx, fabric.Int128, fabric.Uint128,
		fabric.Float16, fabric.BFloat16, fabric.Float8E4M3, fabric.Float8E5M2,
	} {
		one, other := wideValues(kind)
		size := kind.Size()
		equal(t, size, len(one))
		for _, c := range []struct {
			k  fabric.OpKind
			op fabric.AtomicOp
		}{{fabric.OpAtomic, fabric.AtomicWrite}, {fabric.OpFetch, fabric.AtomicRead}, {fabric.OpCompare, fabric.CompareSwap}} {
			_, err := a.e.AtomicLimit(c.k, kind, c.op)
			if errors.Is(err, fabric.ErrNotSupported) {
				continue
			}
			noError(t, err)
			has++
			t.sub(kind.String()+", "+c.op.String(), func(t *trial) {
				result, want := make([]byte, size), other
				with := &fabric.Atomic{Type: kind, Operation: c.op}
				post := fabric.Op{Kind: c.k, Peer: a.peer, Remote: remote, Atomic: with, Buf: other}
				switch c.k {
				case fabric.OpFetch:
					post.Buf, with.Count, with.Result, want = nil, 1, result, one
				case fabric.OpCompare:
					with.Compare, with.Result = one, result
				}
				copy(memory, one)
				memory[size] = 77
				a.change(t, post, func() bool { return bytes.Equal(want, memory[:size]) })
				equal(t, want, memory[:size])
				equal(t, 77, memory[size], "what is behind")
				if c.k != fabric.OpAtomic {
					equal(t, one, result, "what was there")
				}
			})
		}
	}
	if has == 0 {
		t.need("atomics of types that Go does not have", fabric.ErrNotSupported)
	}
	idle(t, a, b)
}

// wideValues are two values of a type, in the bytes of this machine. A long double
// has 10 bytes on x86-64, and zeros behind: 1.0 and 2.0.
func wideValues(kind fabric.DataType) (one, other []byte) {
	one, other = counting(kind.Size()), counting(kind.Size() + 1)[1:]
	if kind == fabric.LongDouble || kind == fabric.LongDoubleCpx {
		clear(one)
		clear(other)
		for at := 0; at < len(one); at += 16 {
			copy(one[at:], []byte{7: 0x80, 8: 0xff, 9: 0x3f})
			copy(other[at:], []byte{7: 0x80, 9: 0x40})
		}
	}
	return one, other
}
