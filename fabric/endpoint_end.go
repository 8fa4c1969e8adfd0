package fabric

import "errors"

// Cancel asks for the end of an operation in flight. Its completion still comes,
// with ErrCanceled or as if nothing had happened, and only then its buffer is the
// caller's. A token whose operation is complete is nothing to cancel, and no
// error. It does not allocate, but for errors.
//
// Implements: int fi_cancel(...)
func (e *Endpoint) Cancel(token Token) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if e.turn == nil {
		return e.notEnabled("fi_cancel")
	}
	if e.severed {
		// Everything has ended.
		return nil
	}
	q := e.send
	if token&receiveToken != 0 || q == nil {
		q = e.receive
	}
	if q == nil {
		// It is of an endpoint that has the other direction, too.
		return nil
	}
	index, s := q.lookup(uint64(token &^ receiveToken))
	if s == nil || s.claimed || s.endpoint != e && s.endpoint.connection.of != e {
		return nil
	}
	if e.isDirected(s) {
		return q.cancelDirected(e, index)
	}
	code := q.slots.Cancel(e.raw, int(index))
	if errors.Is(Errno(code), ErrNotFound) || errors.Is(Errno(code), ErrAgain) {
		// The completion is on its way.
		return nil
	}
	return fail("fi_cancel", e.provider, int(code))
}

// Close closes the endpoint, and its groups for collectives. ErrBusy says what is
// still open on it. Operations in flight end without a completion, and their
// buffers are the caller's again on return: a peer that gets what they were to send all
// the same may get what the buffers hold by then, and on shm what the endpoint has read may still come
// into them, if the peer is of this process and did not answer before. Their places in the completion queue
// are not used again, because it may still hold something about them.
// A ReadWait of its queues by another goroutine is ended, and their calls wait
// meanwhile; other endpoints of the queues must not be in a turn. On efa it waits until
// what was sent has left the device, or none of it has for a second.
// There, unless nothing of a host goes through shm, and on shm, it also waits until what it reads and writes of
// peers' memory has ended, or none of it has for a second.
// On shm, and on efa, which has shm within a host, some of it is put off: an endpoint
// that another of this process has inserted, or that has inserted another, stays open
// inside, with its memory of 16 MiB in /dev/shm, until that one is closed, also inside, or has
// removed it, if it has sent that one nothing since, and nothing was in flight. One that shares
// its queue also stays until the queue, or another endpoint of it, is closed, and those of two
// domains that have to do with each other until one of the domains is closed. On sockets, one
// with a shared receive context stays until that is closed, or 32 others of it have been and what came
// for it has been received.
//
// Implements: int fi_close(...)
func (e *Endpoint) Close() error {
	if e.number == 0 {
		return e.neverOpened()
	}
	if err := e.closeItself(); err != nil || e.shared == nil {
		return err
	}
	return e.shared.endSharers(mostSharers)
}

func (e *Endpoint) closeItself() error {
	for _, q := range e.queues() {
		q.giveWay()
	}
	// Queues that are closed already are those of an endpoint that is.
	if readmit, err := excludeFrom(e.queues()...); err == nil {
		defer readmit()
	}
	err := e.close(func() error {
		if err := e.endGroups(false); err != nil {
			return err
		}
		e.disconnect()
		e.endArrivals()
		e.endClaimed()
		e.endReads(true)
		e.endSegments()
		if err := fail("fi_close of endpoint", e.provider, int(e.closeRaw())); err != nil {
			return err
		}
		// Whatever fails from here on, it is not closed twice.
		e.severed, e.hungUp = true, false
		for i := range e.neighbour.pinned {
			e.neighbour.pinned[i].Unpin()
		}
		e.neighbour.pinned = nil
		for _, q := range e.queues() {
			q.outlives()
		}
		if e.spill != nil {
			e.spill.give(core(e.provider) == "sockets")
			e.spill = nil
		}
		if err := e.endGroups(true); err != nil {
			return err
		}
		if r := e.connection.request; r != nil {
			r.ended(e)
		}
		if e.turn == nil {
			return nil
		}
		e.turn.Free()
		if !e.abandoned {
			e.abandon()
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, onThisHost.endAll(e.domain))
	}
	return onThisHost.endAll(e.domain, e.queues()...)
}

// giveUp is abandon for an endpoint that stays open inside: what it would still
// receive must not come into buffers that are the caller's. What it reads cannot be cancelled: it
// comes when the peer answers, and the memory for it stays pinned, so that it is nothing else by then.
func (e *Endpoint) giveUp() {
	e.endDirected()
	for _, q := range e.queues() {
		for i := range q.table {
			s := &q.table[i]
			if !s.busy || s.endpoint != e {
				continue
			}
			switch {
			case kinds[s.kind].receive:
				if !e.isDirected(s) {
					q.slots.Cancel(e.raw, i)
				}
			case s.kind == OpRead || s.kind == OpFetch || s.kind == OpCompare:
				e.pinForGood(s)
			}
		}
	}
	e.abandon()
}

// hasInFlight says whether something that it sends, or does to a peer's memory, is in flight.
func (e *Endpoint) hasInFlight() bool {
	for _, q := range e.queues() {
		for i := range q.table {
			if s := &q.table[i]; s.busy && s.endpoint == e && !kinds[s.kind].receive {
				return true
			}
		}
	}
	return false
}

// abandon gives the operations in flight up.
func (e *Endpoint) abandon() {
	e.abandoned = true
	for _, q := range e.queues() {
		for i := range q.table {
			if s := &q.table[i]; s.busy && s.endpoint == e {
				q.strand(uint32(i))
			}
		}
	}
}
