package tagged

// Arbiter lets connections take turns: each has a FIFO [Queue] of operations to
// be posted, and each turn is worth a quota of operations. Within a queue
// nothing overtakes.
//
// The zero Arbiter is empty and ready. An arbiter and its queues are used by
// one goroutine at a time. No method takes longer for more queues or for more
// operations waiting; Gather and Drop take time for what they move.
type Arbiter[T any] struct {
	// head is the queue whose turn is next in the circle of those that are not
	// empty; a queue whose turn is over becomes the last.
	head *Queue[T]
	// turns are those of the last Gather, and generation is its number.
	turns      []turn[T]
	generation uint64
	// From turns[end] on everything was put back, and of turns[end-1] some may
	// have been.
	end int
}

// turn is a run of operations that Gather took from one queue.
type turn[T any] struct {
	queue  *Queue[T]
	before int // how much of its quota the queue had used up earlier
	count  int
	back   int // how many were put back, where nothing after them was posted
}

// stuck is how often in a row a queue is refused, while others are not, before
// it has to wait for them.
const stuck = 2

// Empty says that no operation waits in any queue.
func (a *Arbiter[T]) Empty() bool { return a.head == nil }

// Push adds an operation at the back of a queue.
func (a *Arbiter[T]) Push(q *Queue[T], v T) {
	q.pushBack(v)
	if q.next == nil {
		a.enter(q)
	}
}

// Gather moves operations from the queues to dst, until dst is full or the
// queues are empty, and returns their number. The queues take turns of up to
// quota operations, so each that is not empty has had one turn before any has
// two. A turn that is cut short, because dst is full, goes on at the next
// Gather. A quota below 1 is taken as 1.
func (a *Arbiter[T]) Gather(dst []T, quota int) int {
	a.settle()
	quota = max(quota, 1)
	n := 0
	for a.head != nil && n < len(dst) {
		q := a.head
		// Less than none if the quota is smaller than last time.
		count := max(min(quota-int(q.used), q.length, len(dst)-n), 0)
		for i := range count {
			dst[n+i] = q.popFront()
		}
		n += count
		if count > 0 {
			if q.generation != a.generation {
				q.generation, q.taken, q.back = a.generation, 0, 0
			}
			q.taken += count
			a.turns = append(a.turns, turn[T]{queue: q, before: int(q.used), count: count})
			q.used += int32(count)
		}
		switch {
		case q.length == 0:
			a.leave(q)
		case int(q.used) >= quota:
			q.used = 0
			a.head = q.next
		}
	}
	a.end = len(a.turns)
	return n
}

// PutBack restores operations that the last Gather took from a queue and that
// were refused, at its front, values[0] first. What is put back by several
// calls is put back from the last operation of dst to the first, so that order
// is kept:
//
//	for i := n - 1; i >= 0; i-- {
//		if refused(dst[i]) {
//			arbiter.PutBack(queue(dst[i]), dst[i])
//		}
//	}
//
// If everything from some operation on was refused, as where the device is
// full, the next Gather starts there, so that a queue that comes late in dst is
// not always the one refused. A queue of which nothing was posted, though later
// operations of others were, or when nothing at all was, is the first in the
// next Gather; if that happens to it again, it may be stuck, and is the last.
func (a *Arbiter[T]) PutBack(q *Queue[T], values ...T) {
	for i := len(values) - 1; i >= 0; i-- {
		q.pushFront(values[i])
		a.noteBack(q)
	}
	if q.next == nil && q.length > 0 {
		a.enter(q)
	}
}

func (a *Arbiter[T]) noteBack(q *Queue[T]) {
	if q.generation != a.generation {
		return // not of the last Gather
	}
	q.back++
	// Of a turn whose last operation was posted nothing comes back: it stays the
	// last, whatever is put back of the turns before it.
	if a.end == 0 || a.turns[a.end-1].queue != q {
		return
	}
	t := &a.turns[a.end-1]
	t.back++
	if t.back == t.count {
		a.end--
	}
}

// settle decides the order of the next turns from what was put back of the last
// ones.
func (a *Arbiter[T]) settle() {
	for i := range a.turns {
		t := &a.turns[i]
		q := t.queue
		if q.taken == 0 {
			continue // seen in an earlier turn
		}
		if q.back < q.taken {
			q.refusals = 0
		} else if q.length > 0 && (i < a.end || a.end == 0) {
			q.refusals++
			if q.refusals < stuck {
				t.back = t.count
			} else {
				q.passed = a.generation
				a.leave(q)
				a.enter(q)
			}
		}
		q.taken = 0
	}
	for i := len(a.turns) - 1; i >= 0; i-- {
		t := &a.turns[i]
		if t.back > 0 && t.queue.length > 0 && t.queue.passed != a.generation {
			a.lead(t.queue)
			t.queue.used = int32(t.before + t.count - t.back)
		}
	}
	clear(a.turns)
	a.turns = a.turns[:0]
	a.generation++
}

// Drop empties a queue and calls f with each of its operations, in order. f
// must not use the arbiter.
func (a *Arbiter[T]) Drop(q *Queue[T], f func(T)) {
	q.refusals = 0
	if q.length == 0 {
		return
	}
	a.leave(q)
	for q.length > 0 {
		f(q.popFront())
	}
}

// enter makes q, which is not in the circle, the last in turn.
func (a *Arbiter[T]) enter(q *Queue[T]) {
	if a.head == nil {
		a.head, q.next, q.prev = q, q, q
		return
	}
	q.next, q.prev = a.head, a.head.prev
	q.prev.next, q.next.prev = q, q
}

// lead makes q, which is in the circle, the first in turn.
func (a *Arbiter[T]) lead(q *Queue[T]) {
	if a.head != q {
		a.leave(q)
		a.enter(q)
		a.head = q
	}
}

// leave takes q out of the circle, and ends its turn.
func (a *Arbiter[T]) leave(q *Queue[T]) {
	if a.head == q {
		a.head = q.next
	}
	if a.head == q {
		a.head = nil
	} else {
		q.prev.next, q.next.prev = q.next, q.prev
	}
	q.next, q.prev, q.used = nil, nil, 0
}
