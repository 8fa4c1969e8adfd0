package efa

import (
	"sync"
	"sync/atomic"
)

// followers are the calls that parked because somebody else led.
type followers struct {
	mu    sync.Mutex
	head  *call
	tail  *call
	count atomic.Int32
	// Of all times: how many there were, and how many were woken to lead.
	total, handOvers uint64
}

func (f *followers) add(k *call) {
	f.mu.Lock()
	f.total++
	k.following = true
	if k.prev = f.tail; k.prev != nil {
		k.prev.next = k
	} else {
		f.head = k
	}
	f.tail = k
	f.count.Add(1)
	f.mu.Unlock()
}

func (f *followers) remove(k *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unlink(k)
}

func (f *followers) unlink(k *call) {
	if !k.following {
		return
	}
	k.following = false
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		f.head = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	} else {
		f.tail = k.prev
	}
	k.prev, k.next = nil, nil
	f.count.Add(-1)
}

// wake takes the longest waiting follower out and rings for it, and says
// whether there was one that will lead. One that has what it waits for will
// not, and neither must those behind it wait for that. Under the lock, the
// calls cannot be gone yet.
func (f *followers) wake() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := f.head; k != nil; k = f.head {
		f.unlink(k)
		k.ring()
		if !k.done.Load() {
			f.handOvers++
			return true
		}
	}
	return false
}
