package efa

import (
	"strconv"
	"sync"
)

// Completion is the end of several sends together, such as the fragments of one
// large transfer, on one connection or on several. Its methods may be called
// from any goroutine.
type Completion struct {
	f func(error)
	// inRole: f is the reactor's own, and called where the last fragment ends.
	inRole bool

	mu    sync.Mutex
	count int // of fragments
	taken int // of these, handed to a connection or skipped
	ended int
	err   error
}

// NewCompletion makes the completion of that many fragments, of which there must be one at
// least, or it panics. f is called once, when the last of them has ended, with the first
// error or nil: never inside the call that sends, but maybe at the same time as other
// callbacks, since connections of several reactors end fragments, and Skip does. A send
// that returns an error has taken no fragment: Skip it, or f is never called.
func NewCompletion(fragments int, f func(error)) *Completion {
	if fragments < 1 {
		panic("efa: a completion of " + strconv.Itoa(fragments) + " fragments: there must be one at least")
	}
	return &Completion{f: f, count: fragments}
}

// Skip ends a fragment that is not sent, with an error or nil.
func (d *Completion) Skip(err error) error {
	if failed := d.reserve(); failed != nil {
		return failed
	}
	if f, result, last := d.end(err); last {
		go f(result)
	}
	return nil
}

// reserve counts a fragment that is about to be sent.
func (d *Completion) reserve() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken == d.count {
		return &CompletionError{Fragments: d.count}
	}
	d.taken++
	return nil
}

func (d *Completion) unreserve() {
	d.mu.Lock()
	d.taken--
	d.mu.Unlock()
}

func (d *Completion) complete(q *callbackQueue, err error) {
	f, result, last := d.end(err)
	switch {
	case last && d.inRole:
		f(result)
	case last:
		q.add(f, result)
	}
}

func (d *Completion) end(err error) (f func(error), result error, last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
	d.ended++
	return d.f, d.err, d.ended == d.count
}

// CompletionError says that a Completion has all of its fragments already.
type CompletionError struct{ Fragments int }

func (e *CompletionError) Error() string {
	return "efa: the completion was made for " + strconv.Itoa(e.Fragments) + " fragments, and has them"
}
