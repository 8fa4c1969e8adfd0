package fabric

import (
	"strconv"
	"syscall"
)

// wrong says why an operation was not even tried.
func (e *Endpoint) wrong(op *Op) (Errno, string) {
	if errno, why := e.unfit(op); errno != 0 {
		return errno, why
	}
	if op.Flags&(Claim|Peek) != Claim {
		return errnoInvalid, "the endpoint was not connected"
	}
	return errnoInvalid, "there is no claimed message with this token"
}

// unfit says why the endpoint cannot take an operation, whatever is in flight.
func (e *Endpoint) unfit(op *Op) (Errno, string) {
	if why := op.wrong(); why != "" {
		return errnoInvalid, why
	}
	if why := e.emptyTooMuch(op); why != "" {
		return Errno(syscall.ENOSYS), why
	}
	if e.tooManyRemotes(op) {
		return errnoInvalid, "an operation has at most " + strconv.FormatUint(e.mostRemotes(), 10) +
			" pieces of remote memory here, not " + strconv.Itoa(len(op.Remotes))
	}
	if e.placeless(op) {
		return errnoInvalid, "a MultiReceive takes a receive queue whose completions say where a message is: CompletionTagged or CompletionData"
	}
	if e.undirected && op.Kind == OpReceive && op.Peer != AddressAny {
		return Errno(syscall.ENOSYS), "an untagged receive takes messages of any peer here; receive by a tag, or from AddressAny"
	}
	if e.registered && op.unregistered() {
		return errnoInvalid, "a buffer here must be registered, and have its descriptor with it"
	}
	if e.spilling(op) {
		if why := tooManyBuffers(op); why != "" {
			return errnoInvalid, why
		}
	}
	if errno, why := e.connection.refuses(e, kinds[op.Kind].receive); errno != 0 {
		return errno, why
	}
	if !e.reaches(op) {
		return Errno(syscall.ENOENT), noPeer(op.Peer)
	}
	if e.queue(op.Kind) == nil {
		return errnoInvalid, "the endpoint has no completion queue for this direction"
	}
	return 0, ""
}

// undirected says of endpoints that untagged receives do not look at the peer
// that they name: tcp's own, from libfabric 1.18 on, although they say that they
// can.
func undirected(i *Info) bool {
	return i.Provider() == "tcp" && i.Endpoint() == ReliableDatagram && i.Capabilities()&DirectedReceive != 0
}

// emptyTooMuch says why an operation with nothing in it is not for the provider,
// or nothing.
func (e *Endpoint) emptyTooMuch(op *Op) string {
	why := ""
	switch op.Kind {
	case OpSend, OpTaggedSend, OpWrite:
		if op.Flags&DeliveryComplete != 0 && olderThanTwo && core(e.provider) == "shm" {
			why = "an empty operation with DeliveryComplete never completes on shm of libfabric 1.x"
		}
	case OpRead:
		if core(e.provider) == "efa" {
			why = "the process dies of an empty read on efa"
		}
	}
	if why == "" || len(op.Buf) > 0 {
		return ""
	}
	for _, b := range op.Vector {
		if len(b) > 0 {
			return ""
		}
	}
	return why
}

var olderThanTwo = LibraryVersion().Major == 1
