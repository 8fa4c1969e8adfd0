package fabrictest

import "slices"

// queue is a first-in, first-out list that also gives up elements of its
// middle. It does not allocate once it has grown.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int   { return len(q.items) - q.head }
func (q *queue[T]) at(i int) T { return q.items[q.head+i] }

func (q *queue[T]) push(item T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		count := copy(q.items, q.items[q.head:])
		clear(q.items[count:])
		q.items, q.head = q.items[:count], 0
	}
	q.items = append(q.items, item)
}

func (q *queue[T]) remove(i int) T {
	item := q.at(i)
	if i > 0 {
		q.items = slices.Delete(q.items, q.head+i, q.head+i+1)
		return item
	}
	var none T
	q.items[q.head] = none
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return item
}
