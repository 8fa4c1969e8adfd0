package fabric

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/weft-go/weft/cgo"
)

// The thread of sockets goes on with what was under way when an endpoint, or a context, is
// closed: what it sends waits for an answer, which is looked up by a number and not by whom
// it belongs to, and what it receives is in the connection. fi_close frees what both of them
// refer to. So nothing is under way when it is called. An endpoint's connections are
// ended before, and libfabric has seen that. A scalable endpoint's belong to all of
// its contexts: one that is closed stays open inside, where its operations come to
// their end by themselves, until the endpoint is closed. If they do not, since a peer
// is stopped say, the connections are ended. So does an endpoint with a shared receive
// context, until that is closed, or nothing of its is there any more.

const (
	// patienceWithPeers is how long operations of a context may take to end by themselves.
	patienceWithPeers = time.Second
	// patienceWithThread is how long libfabric may take to see that a connection has
	// ended, which it does at its next look.
	patienceWithThread = 10 * time.Second
	// patienceWithAnswer is how long it may take where nothing tells whether it has looked.
	// If it has an answer ready for a connection that ends before the answer can go, it
	// never sees the end.
	patienceWithAnswer = time.Second
	lookAgain          = 100 * time.Microsecond
)

// disconnect leaves nothing under way at an endpoint that is to be closed, and says whether its
// connections were seen to end.
func (e *Endpoint) disconnect() (ended bool) {
	whole := e.connection.part == wholeEndpoint || e.connection.part == sharingReceive
	if core(e.provider) != "sockets" || e.turn == nil || e.severed && !e.hungUp || !whole {
		return false
	}
	found := false
	if e.Info().Endpoint() != Connected {
		found, ended = disconnectAll(e.raw)
	}
	if !found {
		ended = e.hangUp()
		// Without a probe, nothing else tells that the thread has seen it. What is not
		// found ends by itself, or not.
		e.drain(patienceWithPeers)
	}
	e.gather(true)
	return ended
}

// hangUp ends the connections that came into the set that the endpoint was made with. What
// the thread holds for them is in the receive context, which it forgets when an endpoint
// with a context of its own is closed, and goes on with if the context is a shared one. It says
// whether they were seen to end.
func (e *Endpoint) hangUp() (ended bool) {
	return e.links != nil && e.links.cutAll(time.Now().Add(patienceWithAnswer))
}

// disconnectAll ends the connections of an endpoint that is to be closed, and has it
// accept no more of them. It says whether they were found, and whether they were seen to end.
func disconnectAll(raw cgo.Endpoint) (found, ended bool) {
	name, code := raw.Name()
	if code != 0 {
		return false, false
	}
	l := linksOf(name)
	acceptNoMore(name)
	if l == nil {
		return false, false
	}
	end := time.Now().Add(patienceWithThread)
	ended = l.cutAll(end)
	return true, l.finish(end) && ended
}

// cutAll ends connections until libfabric has seen it, which it says, or the time is over.
func (l *links) cutAll(end time.Time) bool {
	for l.cut() > 0 {
		if !time.Now().Before(end) {
			return false
		}
		time.Sleep(lookAgain)
	}
	return true
}

// drain waits until the operations of an endpoint have ended, and says whether they have.
// Receives are cancelled.
func (e *Endpoint) drain(patience time.Duration) bool {
	for end := time.Now().Add(patience); ; time.Sleep(lookAgain) {
		under := e.underWay()
		e.gather(true)
		if under == 0 {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// underWay counts operations in flight, and cancels receives.
func (e *Endpoint) underWay() (n int) {
	for _, q := range e.queues() {
		for i := range q.table {
			s := &q.table[i]
			// What waits for a counter may wait for ever, and is not under way before.
			if !s.busy || s.claimed || s.endpoint != e || s.flags&OpFlags(cgo.FlagTrigger) != 0 {
				continue
			}
			n++
			if kinds[s.kind].receive {
				q.slots.Cancel(e.raw, i)
			}
		}
	}
	return n
}

// gather reads what has completed, and keeps it for the program, but for what is of the endpoint if it
// closes.
func (e *Endpoint) gather(closes bool) {
	for _, q := range e.queues() {
		for {
			n, code := q.reader.Take(0, len(q.reader.Completions), 0, 0)
			if code != 0 || n == 0 {
				break
			}
			for i := range n {
				q.keep(&q.reader.Completions[i], e, closes)
			}
		}
	}
}

// outlivedBy has a context of a scalable endpoint stay open inside until that is closed.
func (e *Endpoint) outlivedBy(s *ScalableEndpoint) {
	e.hold = func() bool {
		if !e.drain(patienceWithPeers) {
			if name, code := s.raw.Name(); code == 0 {
				if l := linksOf(name); l != nil {
					end := time.Now().Add(patienceWithThread)
					for l.cut(); !e.drain(lookAgain) && time.Now().Before(end); {
						l.cut()
					}
					l.finish(end)
				}
			}
		}
		e.abandon()
		s.mu.Lock()
		s.outlived = append(s.outlived, e)
		s.mu.Unlock()
		return true
	}
}

// endOutlived ends the contexts that are open inside, and with the last of them the
// endpoint.
func (s *ScalableEndpoint) endOutlived() error {
	s.mu.Lock()
	outlived := s.outlived
	s.outlived = nil
	s.mu.Unlock()
	if len(outlived) == 0 {
		return nil
	}
	disconnectAll(s.raw)
	var all error
	for _, e := range outlived {
		all = errors.Join(all, e.releaseOutlived())
	}
	return all
}

// mostSharers is how many closed endpoints of which nothing is left there a shared context has stay
// open inside, each with up to four descriptors and some 100 KB; and mostAwaited is how many, for
// whatever reason, when another one is opened.
const (
	mostSharers = 32
	mostAwaited = 128
)

// outlivedByShared has an endpoint stay open inside until the shared context is closed that it
// receives into, or mostSharers others have been and what came for it was received. That is in
// the context, whole or in part, and says which endpoint it is of: a receive that finds it there looks into that.
func (e *Endpoint) outlivedByShared(s *Endpoint) {
	e.hold = func() bool {
		e.parted = e.disconnect()
		if !s.unreceivedKnown || !s.unreceived.answered(e) {
			e.parted = false
		}
		e.heldAt = time.Now()
		e.abandon()
		s.mu.Lock()
		s.sharers = append(s.sharers, e)
		s.mu.Unlock()
		return true
	}
}

// endSharers ends endpoints that a shared context had stay open inside, up to most, the oldest
// first: all of them if it is closed, which ends with the last, and otherwise those that it has
// nothing more of, as far as that is known. One that libfabric does not close is tried again.
func (e *Endpoint) endSharers(most int) error {
	e.sharing.Lock()
	defer e.sharing.Unlock()
	e.mu.Lock()
	sharers := e.sharers
	e.sharers = nil
	e.mu.Unlock()
	var all error
	var left []*Endpoint
	for i, s := range sharers {
		if len(left)+len(sharers)-i <= most || most > 0 && e.mayReferTo(s) {
			left = append(left, s)
		} else if err := s.releaseOutlived(); err != nil {
			all = errors.Join(all, err)
			left = append(left, s)
		}
	}
	e.mu.Lock()
	e.sharers = append(left, e.sharers...)
	e.mu.Unlock()
	return all
}

// mayReferTo says whether a shared context may have something of a closed endpoint. What the thread
// has not seen to end may still bring something, for a while.
func (e *Endpoint) mayReferTo(s *Endpoint) bool {
	return e.unreceivedKnown && (!s.parted && time.Since(s.heldAt) < patienceWithThread || e.unreceived.RefersTo(s.raw))
}

// roomForSharer says why no other endpoint can receive into a shared context, or nil.
func (e *Endpoint) roomForSharer() error {
	if e.closedSharers() < mostAwaited {
		return nil
	}
	// Their messages may have been received since.
	err := e.endSharers(mostSharers)
	n := e.closedSharers()
	if n < mostAwaited {
		return nil
	}
	if err != nil {
		return err
	}
	return &Error{
		Op: "fi_ep_bind", Provider: e.provider, Errno: Errno(syscall.EBUSY),
		Detail: fmt.Sprintf("the shared receive context has messages of %d endpoints that are closed: they have to be received, or the context closed", n),
	}
}

func (e *Endpoint) closedSharers() int {
	e.sharing.Lock() // whoever ends some has all of them meanwhile
	defer e.sharing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sharers)
}

func (e *Endpoint) releaseOutlived() error {
	// Of queues that are closed, nobody is a reader.
	if readmit, err := excludeFrom(e.queues()...); err == nil {
		defer readmit()
	}
	return e.release()
}
