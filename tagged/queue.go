package tagged

// Queue holds the operations of one connection that wait to be posted. It is
// meant to be a field of the connection; the zero Queue is empty and ready. It
// belongs to the [Arbiter] that it was first pushed to, and must not be copied
// after that. Its memory grows with the number of operations in it, which is
// for the caller to bound, and is reused after that.
type Queue[T any] struct {
	slots  ring[T]
	front  uint64
	length int

	// What follows is the arbiter's.
	next, prev  *Queue[T] // nil while empty
	used        int32     // of the quota, in the turn that is not over
	refusals    int32     // how often in a row nothing was posted, while there was room for others
	generation  uint64    // the last Gather that took something
	taken, back int       // how much that was, and how much of it was put back
	passed      uint64    // the last Gather after which the queue was made the last
}

// Len is the number of operations waiting.
func (q *Queue[T]) Len() int { return q.length }

func (q *Queue[T]) pushBack(v T) {
	q.slots.grow(q.front, q.length+1)
	*q.slots.at(q.front + uint64(q.length)) = v
	q.length++
}

func (q *Queue[T]) pushFront(v T) {
	q.slots.grow(q.front, q.length+1)
	q.front--
	*q.slots.at(q.front) = v
	q.length++
}

// popFront removes the front of a queue that is not empty.
func (q *Queue[T]) popFront() T {
	s := q.slots.at(q.front)
	v := *s
	var zero T
	*s = zero
	q.front++
	q.length--
	return v
}
