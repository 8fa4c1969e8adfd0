package fabric

// SetBatching says whether the operations of one Turn carry FI_MORE, all but the
// last of them: a provider may then prepare them one by one and start its
// hardware once. What is held back that way is started within the same Turn, by
// the last one that is tried of its family (tagged sends, tagged receives, sends,
// receives, RMA, atomics).
//
// It is on where a provider is known to make use of it, and to start what it
// holds back when a later operation fails, as libfabric asks of it: efa and cxi,
// from libfabric 2.7 on. Before, efa forgot operations with FI_MORE that had to
// wait for the handshake with their peer.
//
// The endpoint has to be enabled, which is ErrInvalid before, and nobody may take a
// turn at the same time. Aliases and shared contexts never batch.
func (e *Endpoint) SetBatching(on bool) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if e.turn == nil {
		return e.notEnabled("batching")
	}
	if err := e.whole("batching"); err != nil {
		return err
	}
	e.batch(on)
	return nil
}

// Batching says whether the operations of one Turn carry FI_MORE.
func (e *Endpoint) Batching() bool { return e.batching }

// batch sets it. FI_MORE needs the form of a call that takes flags, which then
// has to carry the endpoint's defaults as well.
func (e *Endpoint) batch(on bool) {
	e.batching = on
	if !on {
		e.turn.Batch(false, 0, 0)
		return
	}
	flags := func(d Direction, known OpFlags) uint64 {
		now, code := e.raw.OperationFlags(uint64(d))
		if code != 0 {
			return uint64(known)
		}
		return now &^ uint64(d)
	}
	i := e.domain.info
	e.turn.Batch(on, flags(Sending, i.Send().Flags), flags(Receiving, i.Receive().Flags))
}

// batches says whether a provider is better off with FI_MORE. Sources: libfabric
// pull requests 12014 (what is held back is started when an operation fails) and
// 12623 (efa keeps FI_MORE of an operation that it has to queue).
func batches(core string, v Version) bool {
	switch core {
	case "efa", "cxi":
		return v.Major > 2 || (v.Major == 2 && v.Minor >= 7)
	}
	return false
}
