package efa

import (
	"context"
	"sync"
)

// callbackQueue runs callbacks, in order, on a goroutine that is there while
// there are any: never inside a call of the program's, and outside of the
// progress role, so that they may write and close.
type callbackQueue struct {
	mu      sync.Mutex
	queue   []callback
	running bool
	ran     uint64
	labels  context.Context
}

type callback struct {
	f   func(error)
	err error
}

func (q *callbackQueue) add(f func(error), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, callback{f, err})
	if !q.running {
		q.running = true
		go q.run()
	}
}

func (q *callbackQueue) run() {
	wear(q.labels)
	var batch []callback
	for {
		q.mu.Lock()
		q.ran += uint64(len(batch))
		batch, q.queue = q.queue, batch[:0]
		if len(batch) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		for i, c := range batch {
			c.f(c.err)
			batch[i] = callback{}
		}
	}
}
