package collective

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// wanted is a call as the program has asked for it.
type wanted[T any] struct {
	kind   schedule.Collective
	root   int
	length int // elements
	// input is read only, and output nil on ranks that have none.
	input, output []T
	op            operator.Erased // of a kind that combines
	uneven        *uneven
}

// mostBytes is the most that the ranks of a call have together. No machine has it.
const mostBytes = min(1<<48, math.MaxInt)

// sizeOf is the size of an element in bytes.
func sizeOf[T any]() int { return int(unsafe.Sizeof(*new(T))) }

// prepare checks what was asked for.
func prepare[T any](c *comm.Comm, w wanted[T], options []Option) prepared {
	input, err := operator.Bytes(w.input)
	if err != nil {
		return refused(c, err)
	}
	output, err := operator.Bytes(w.output)
	if err != nil {
		return refused(c, err)
	}
	if err := checkRoot(c, w.root); err != nil {
		return refused(c, err)
	}
	if err := w.op.Err(); err != nil && combines(w.kind) {
		return refused(c, err)
	}
	g, err := groupOf(c, nil)
	if err != nil {
		return prepared{err: err}
	}
	over, each := bits.Mul64(uint64(w.length), uint64(sizeOf[T]()))
	bytes := int(each)
	if high, low := bits.Mul64(each, uint64(g.size)); over != 0 || high != 0 || low > mostBytes {
		most := mostBytes / g.size / sizeOf[T]()
		return refused(c, &ArgumentError{"length", fmt.Sprintf("of %d elements for each of %d ranks", w.length, g.size), fmt.Sprintf("%d at most", most)})
	}
	o, err := g.options(w.kind, bytes, sizeOf[T](), !combines(w.kind) || w.op.Commutative(), options)
	if err != nil {
		return refused(c, err)
	}
	var own *provision
	if o.Algorithm == schedule.Provider {
		own, o.Algorithm, err = g.provide(provision{kind: w.kind, root: w.root, length: bytes, uneven: w.uneven != nil}, w.op, options)
		if err != nil {
			return refused(c, err)
		}
	}
	call := newCall(g, input, output, w.op)
	call.provision = own
	// One by one: to copy what has just been put together waits for that.
	s := &call.shape
	s.Collective, s.Size, s.Root, s.Length, s.Options = w.kind, g.size, w.root, w.length, o
	s.element, s.uneven = sizeOf[T](), w.uneven
	if len(options) > 0 && w.uneven == nil && own == nil {
		if err := g.check(s.Call); err != nil {
			call.release()
			return refused(c, argumentError(err))
		}
	}
	return prepared{call: call}
}

// check says what is wrong with a call that has options of its own, which may be such that there is
// no plan. That takes as long as the rest of a short call: many are as the one before.
func (g *group) check(call schedule.Call) error {
	if last := g.checked.Load(); last != nil && *last == call {
		return nil
	}
	if err := call.Check(); err != nil {
		return err
	}
	checked := call
	g.checked.Store(&checked)
	return nil
}

// combines says whether calls of a kind have an operator.
func combines(kind schedule.Collective) bool {
	return kind == schedule.CollectiveReduce || kind == schedule.CollectiveAllreduce || kind == schedule.CollectiveReduceScatter
}

func checkRoot(c *comm.Comm, root int) error {
	if root < 0 || root >= c.Size() {
		return &ArgumentError{"root", fmt.Sprint(root), fmt.Sprintf("0 to %d", c.Size()-1)}
	}
	return nil
}

// checkLength says that a slice has another length than it must have.
func checkLength(name string, length, want int, because string) error {
	if length == want {
		return nil
	}
	return &ArgumentError{name, fmt.Sprintf("of %d elements", length), fmt.Sprintf("%d, %s", want, because)}
}
