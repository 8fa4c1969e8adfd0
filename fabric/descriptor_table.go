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
	generation atomic.Uint32 // 0 while nothing can be posted with it
	raw        atomic.Uintptr
}

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

// find is what the provider knows as d, if its region is open and of this domain.
func (t *descriptorTable) find(d Descriptor) (raw uintptr, ok bool) {
	slots := t.slots.Load()
	if slots == nil || uint64(uint32(d)) >= uint64(len(*slots)) {
		return 0, false
	}
	s, generation := (*slots)[uint32(d)], uint32(d>>32)
	return s.raw.Load(), generation != 0 && s.generation.Load() == generation
}

// bar keeps new operations from having d; admit takes that back, and remove is the end
// of it.
func (t *descriptorTable) bar(d Descriptor) { t.set(d, 0) }

func (t *descriptorTable) admit(d Descriptor) { t.set(d, uint32(d>>32)) }

func (t *descriptorTable) remove(d Descriptor) {
	if d == 0 {
		return
	}
	t.bar(d)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, uint32(d))
}

func (t *descriptorTable) set(d Descriptor, generation uint32) {
	if d != 0 {
		(*t.slots.Load())[uint32(d)].generation.Store(generation)
	}
}

// translate puts what the provider knows the descriptors of an operation as in their
// place, and says whether all are of open regions.
func (t *descriptorTable) translate(to *uintptr, d Descriptor) bool {
	if d == 0 {
		*to = 0
		return true
	}
	raw, ok := t.find(d)
	*to = raw
	return ok
}

// unknownDescriptor says which descriptor of an operation is of no open region, or "".
func (e *Endpoint) unknownDescriptor(op *Op) string {
	var all descriptors
	all.fill(op)
	for _, d := range all {
		if why := e.domain.unknownDescriptor(d); why != "" {
			return why
		}
	}
	return ""
}

func (d *Domain) unknownDescriptor(of Descriptor) string {
	if of == 0 {
		return ""
	}
	if _, ok := d.descriptors.find(of); ok {
		return ""
	}
	return "the descriptor 0x" + strconv.FormatUint(uint64(of), 16) + " is of no region of this domain that is open"
}
