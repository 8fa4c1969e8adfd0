package fabric

import (
	"errors"
	"runtime"
	"sync"
)

// Receiving a message that ofi_rxm would fetch from a sender that is closed ends the
// receiver's process. Where that is the sender's process, too, the sender stays open inside,
// unused, until the receiver is closed, and so do the registrations of what may be fetched:
// for a fetch that is refused the connection ends, and with it every other message. What is
// fetched then is what is in the caller's memory by that time.
type unfetched struct {
	mu sync.Mutex
	// receivers are the endpoints that may receive such messages, by their ports.
	receivers map[*Endpoint]port
	// senders are those that stayed, and whom they wait for.
	senders map[*Endpoint]map[*Endpoint]struct{}
}

// port is that of a sockaddr, as it is in there.
type port [2]byte

func portOf(name []byte) (p port) {
	if len(name) >= 4 {
		copy(p[:], name[2:4])
	}
	return p
}

var inThisProcess = unfetched{
	receivers: make(map[*Endpoint]port), senders: make(map[*Endpoint]map[*Endpoint]struct{}),
}

// join adds an endpoint that may receive, and send, such messages.
func (u *unfetched) join(e *Endpoint) {
	name, code := e.raw.Name()
	if code != 0 {
		return
	}
	u.mu.Lock()
	u.receivers[e] = portOf(name)
	u.mu.Unlock()
	e.hold = func() bool {
		stays := u.retire(e)
		if stays {
			e.keepUnfetched()
			e.giveUp()
		}
		return stays
	}
}

// keepUnfetched takes what may be fetched from the operations that are given up.
func (e *Endpoint) keepUnfetched() {
	for i := range e.send.table {
		if s := &e.send.table[i]; e.mayBeFetched(s) {
			e.fetching.kept = append(e.fetching.kept, keptMessage{s.fetched, s.pinners, s.pinned})
			s.fetched, s.pinners, s.pinned = fetched{}, [2]runtime.Pinner{}, 0
		}
	}
}

// mayBeFetched says whether an operation is a message of the endpoint's that is not fetched.
func (e *Endpoint) mayBeFetched(s *slot) bool {
	return s.busy && s.fetched.count > 0 && s.endpoint == e
}

// retire says whether an endpoint that is closed for the program must stay.
func (u *unfetched) retire(e *Endpoint) bool {
	peers := e.unfetchedBy()
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.receivers, e)
	waits := make(map[*Endpoint]struct{})
	for other, port := range u.receivers {
		if _, ok := peers[port]; ok {
			waits[other] = struct{}{}
		}
	}
	if len(waits) == 0 {
		return false
	}
	u.senders[e] = waits
	return true
}

// unfetchedBy are the ports of the peers that may have a message of the endpoint's to fetch.
func (e *Endpoint) unfetchedBy() map[port]struct{} {
	if e.send == nil || e.vector == nil {
		return nil
	}
	peers := make(map[port]struct{})
	var name [64]byte
	for i := range e.send.table {
		s := &e.send.table[i]
		if !e.mayBeFetched(s) {
			continue
		}
		if n, code := e.vector.raw.Lookup(uint64(s.fetched.peer), name[:]); code == 0 {
			peers[portOf(name[:min(n, len(name))])] = struct{}{}
		}
	}
	return peers
}

// closed ends the senders that wait for nobody else but an endpoint that is closed.
func (u *unfetched) closed(e *Endpoint) error {
	u.mu.Lock()
	var ended []*Endpoint
	for sender, waits := range u.senders {
		delete(waits, e)
		if len(waits) == 0 {
			delete(u.senders, sender)
			ended = append(ended, sender)
		}
	}
	u.mu.Unlock()
	var all error
	for _, sender := range ended {
		all = errors.Join(all, sender.endInside())
	}
	return all
}

// endInside is the end of an endpoint that has stayed, by whoever has closed another.
func (e *Endpoint) endInside() error {
	// Queues that are closed are nobody's any more.
	if readmit, err := excludeFrom(e.queues()...); err == nil {
		defer readmit()
	}
	return e.release()
}
