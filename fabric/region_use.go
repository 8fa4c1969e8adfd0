package fabric

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// Providers look at what a descriptor stands for until its operation is complete: efa
// dies of SIGSEGV where the registration is gone. So a region that operations in flight
// have is not closed. The slots know their descriptors; whoever closes a region looks
// through them, which costs the path of messages one word an operation.

// mostDescriptors is how many an operation has: of its buffers, or of one, of what it
// compares with and of where the result goes.
const mostDescriptors = cgo.MaxVectors + 2

// severalDescriptors in a slot says that its descriptors stand in the queue.
const severalDescriptors = ^Descriptor(0)

// descriptors are those of an operation.
type descriptors [mostDescriptors]Descriptor

func (d *descriptors) fill(op *Op) {
	*d = descriptors{}
	if copy(d[:cgo.MaxVectors], op.Descriptors) == 0 {
		d[0] = op.ownDescriptor()
	}
	if a := op.Atomic; a != nil {
		d[cgo.MaxVectors], d[cgo.MaxVectors+1] = a.ResultDescriptor, a.CompareDescriptor
	}
}

// describe keeps the descriptors of an operation that may have several.
func (q *CompletionQueue) describe(index uint32, op *Op) {
	if q.descriptors == nil {
		q.descriptors = make([]descriptors, len(q.table))
	}
	q.descriptors[index].fill(op)
	q.table[index].descriptor = severalDescriptors
}

// has says whether the operation of a slot has a descriptor.
func (q *CompletionQueue) has(index int, d Descriptor) bool {
	switch s := &q.table[index]; s.descriptor {
	case d:
		return true
	case severalDescriptors:
		return slices.Contains(q.descriptors[index][:], d)
	}
	return false
}

// domainUse lists what keeps the descriptors of a domain: its queues, those of
// operations in flight, and its deferred operations their own.
type domainUse struct {
	mu       sync.Mutex
	queues   []*CompletionQueue
	deferred []*Deferred
}

func (u *domainUse) addQueue(q *CompletionQueue) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queues = append(u.queues, q)
}

func (u *domainUse) removeQueue(q *CompletionQueue) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queues = slices.DeleteFunc(u.queues, func(other *CompletionQueue) bool { return other == q })
}

func (u *domainUse) addDeferred(f *Deferred) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.deferred = append(u.deferred, f)
}

func (u *domainUse) removeDeferred(f *Deferred) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.deferred = slices.DeleteFunc(u.deferred, func(other *Deferred) bool { return other == f })
}

// users counts operations that have a region, by what they are.
type users map[string]int

// inFlight is an error if operations in flight have the region.
func (r *Region) inFlight() error {
	d := r.descriptor
	if d == 0 {
		return nil
	}
	u := &r.domain.inUse
	u.mu.Lock()
	queues := slices.Clone(u.queues)
	found := make(users)
	for _, f := range u.deferred {
		if slices.Contains(f.uses[:], d) {
			found["deferred operation"]++
		}
	}
	u.mu.Unlock()
	for _, q := range queues {
		q.usersOf(d, found)
	}
	if len(found) == 0 {
		return nil
	}
	var parts []string
	for what, n := range found {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(parts)
	return &Error{
		Op: "close of region", Provider: r.provider, Errno: Errno(syscall.EBUSY),
		Detail: "in flight with it: " + strings.Join(parts, ", "),
	}
}

// usersOf adds the operations of a queue that have a descriptor.
func (q *CompletionQueue) usersOf(d Descriptor, found users) {
	readmit := q.excludeUsers()
	defer readmit()
	left := q.InFlight() - q.stranded
	for i := range q.table {
		if left <= 0 {
			return
		}
		s := &q.table[i]
		if !s.busy {
			continue
		}
		left--
		// What was peeked at and claimed waits for a receive with buffers of its own.
		if !s.claimed && q.has(i, d) {
			found[s.kind.String()+" of "+s.endpoint.title()]++
		}
	}
}

// title is what errors call an endpoint.
func (e *Endpoint) title() string {
	if v := e.neighbour.vector; v != nil && !e.severed {
		if name, code := e.raw.Name(); code == 0 {
			if text, err := v.Text(name); err == nil {
				return e.kind + " " + text
			}
		}
	}
	return e.kind
}
