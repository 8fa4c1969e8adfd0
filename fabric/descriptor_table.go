package fabric

import (
	"strconv"
	"sync"
	"sync/atomic"
)

// A provider's own descriptor is a pointer to what fi_close frees, and it does not look
// whether that is there: efa dies of SIGSEGV of an operation with one that is gone, and
// programs keep descriptors beside their memory. So those of programs are numbers, of a
// slot and of its registration, and what a provider gets is what is in the slot while
// that is open.

// descriptorTable has the descriptors of a domain's open regions. Any goroutine may look
// at it.
type descriptorTable struct {
	slots atomic.Pointer[[]*descriptorSlot]

	mu   sync.Mutex
	free []uint32
}

type descriptorSlot struct {
	generation atomic.Uint32 // 0 while it is free
	raw        atomic.Uintptr
}

// descriptorState is how a descriptor stands; of several, the largest counts.
type descriptorState uint8

const (
	descriptorOpen descriptorState = iota
	// descriptorClosing: Close of its region looks whether that is in use. Whoever posts
	// with it tries again, for Close may refuse.
	descriptorClosing
	// descriptorUnknown: it is of no region of the domain that is open, and will not be.
	descriptorUnknown
)

// needless is in a slot whose descriptor the provider need not get.
const needless = ^uintptr(0)

// generations counts the registrations of all domains, so that a descriptor of one is
// none of another.
var generations atomic.Uint32

// add gives what a provider calls a region's memory a number. Not all of them call it
// anything.
func (t *descriptorTable) add(raw uintptr) Descriptor {
	if raw == 0 {
		return 0
	}
	generation := generations.Add(1)
	for generation == 0 {
		generation = generations.Add(1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	index, s := t.take()
	s.raw.Store(raw)
	s.generation.Store(generation)
	return Descriptor(generation)<<32 | Descriptor(index)
}

// take finds a slot that is free, or makes one more.
func (t *descriptorTable) take() (uint32, *descriptorSlot) {
	var slots []*descriptorSlot
	if all := t.slots.Load(); all != nil {
		slots = *all
	}
	if last := len(t.free) - 1; last >= 0 {
		index := t.free[last]
		t.free = t.free[:last]
		return index, slots[index]
	}
	s := new(descriptorSlot)
	// Who has the shorter list does not look at what is behind it.
	slots = append(slots, s)
	t.slots.Store(&slots)
	return uint32(len(slots) - 1), s
}

// translate puts what the provider knows as d in the place of it.
func (t *descriptorTable) translate(to *uintptr, d Descriptor) descriptorState {
	*to = 0
	if d == 0 {
		return descriptorOpen
	}
	slots := t.slots.Load()
	if slots == nil || uint64(uint32(d)) >= uint64(len(*slots)) {
		return descriptorUnknown
	}
	s, generation := (*slots)[uint32(d)], uint32(d>>32)
	raw := s.raw.Load()
	switch {
	// What was loaded before is of this generation, too.
	case generation == 0 || s.generation.Load() != generation:
		return descriptorUnknown
	case raw == 0:
		return descriptorClosing
	}
	if raw != needless {
		*to = raw
	}
	return descriptorOpen
}

// bar keeps new operations from having d, and returns what the provider knows as it. admit
// takes that back, and remove is the end of d.
func (t *descriptorTable) bar(d Descriptor) (raw uintptr) {
	if d == 0 {
		return 0
	}
	return (*t.slots.Load())[uint32(d)].raw.Swap(0)
}

func (t *descriptorTable) admit(d Descriptor, raw uintptr) {
	if d != 0 {
		(*t.slots.Load())[uint32(d)].raw.Store(raw)
	}
}

func (t *descriptorTable) remove(d Descriptor) {
	if d == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	(*t.slots.Load())[uint32(d)].generation.Store(0)
	t.free = append(t.free, uint32(d))
}

// ownDescriptor is that of Buf. With a Vector, that has them.
func (op *Op) ownDescriptor() Descriptor {
	if len(op.Vector) > 0 {
		return 0
	}
	return op.Descriptor
}

// unknownDescriptor says which descriptor of an operation is of no open region, or "".
func (d *Domain) unknownDescriptor(op *Op) string {
	var all descriptors
	all.fill(op)
	for _, of := range all {
		var raw uintptr
		if d.descriptors.translate(&raw, of) == descriptorUnknown {
			return "the descriptor 0x" + strconv.FormatUint(uint64(of), 16) + " is of no region of this domain that is open"
		}
	}
	return ""
}
