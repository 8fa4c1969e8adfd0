package fabric

// claimedOutliveEndpoint says of a provider that it looks for a message that was claimed and not received
// where it is not any more when the endpoint is closed: efa of libfabric 2.x takes it out of the list of
// messages that are unexpected, and fi_close, which ends what is left of each message, dies of SIGSEGV.
func claimedOutliveEndpoint(provider string) bool {
	return LibraryVersion().Major >= 2 && core(provider) == "efa"
}

// endClaimed drops the messages that were claimed and not received, before their endpoint is closed.
func (e *Endpoint) endClaimed() {
	if e.severed || e.turn == nil || e.receive == nil || !claimedOutliveEndpoint(e.provider) {
		return
	}
	// A peek that has found its message may still be unread.
	if !e.claims() {
		return
	}
	e.gather(true)
	// One that was to be discarded is claimed, too, until it is received (repost.go).
	for _, token := range e.receive.unposted {
		if _, s := e.receive.lookup(token); s != nil && s.endpoint == e && s.drained {
			s.claimed = true
		}
	}
	for i := range e.receive.table {
		s := &e.receive.table[i]
		if !s.busy || !s.claimed || s.endpoint != e {
			continue
		}
		op := Op{
			Kind: s.kind, Peer: AddressAny, Flags: Claim | Discard,
			Claimed: Token(uint64(s.generation)<<32 | uint64(i)),
		}
		e.stage(&op, &e.turn.Ops[0], &e.turn.Extras[0])
		_, _ = e.turn.Take(1, 0, 0, 0)
		e.settle(&op, &e.turn.Ops[0])
	}
	// So that their places are free again, for those who share the queue.
	e.gather(true)
}

// claims says whether the endpoint has messages that are claimed, or is about to.
func (e *Endpoint) claims() bool {
	for i := range e.receive.table {
		if s := &e.receive.table[i]; s.busy && s.endpoint == e && (s.drained || s.flags&(Peek|Claim|Discard) == Peek|Claim) {
			return true
		}
	}
	return false
}
