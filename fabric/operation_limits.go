package fabric

import (
	"strconv"
	"strings"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// wrong says why an operation was not even tried.
func (e *Endpoint) wrong(op *Op) (Errno, string) {
	if errno, why := e.unfit(op); errno != 0 {
		return errno, why
	}
	switch {
	case op.Flags&(Claim|Peek) == Claim:
		return errnoInvalid, "there is no claimed message with this token"
	case e.mixable(op) != 0:
		return errnoInvalid, "receives from AddressAny and from one peer must not be mixed here"
	case e.fetching.on:
		return Errno(syscall.ENOMEM), "the provider does not register the memory, from which the peer would fetch the message"
	}
	return errnoInvalid, "the endpoint was not connected"
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
	if e.misflagged(op) {
		more := op.Flags &^ kinds[op.Kind].flags
		return errnoInvalid, "it does not take the flags " + more.String() + " (0x" + strconv.FormatUint(uint64(more), 16) + ")"
	}
	if why := e.incapable(op); why != "" {
		return Errno(syscall.ENOSYS), why
	}
	if e.tooMuch(op) {
		return errnoInvalid, e.howMuch(op)
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
	if why := e.domain.unknownDescriptor(op); why != "" {
		return errnoInvalid, why
	}
	if e.spilling(op) {
		if why := e.tooManyBuffers(op); why != "" {
			return errnoInvalid, why
		}
	}
	if errno, why := e.connection.refuses(e, kinds[op.Kind].receive); errno != 0 {
		return errno, why
	}
	if !e.reaches(op) {
		return Errno(syscall.ENOENT), noPeer(op.Peer)
	}
	if errno, why := e.lacking(op); errno != 0 {
		return errno, why
	}
	if e.queue(op.Kind) == nil {
		return errnoInvalid, "the endpoint has no completion queue for this direction"
	}
	return 0, ""
}

// misflagged says that an operation has flags that are not for its kind. Most providers
// look only for those that they expect; sockets takes FI_TRIGGER for the word that
// the operation's context says what it waits for.
func (e *Endpoint) misflagged(op *Op) bool {
	return op.Flags&^(kinds[op.Kind].flags|e.ownFlags) != 0
}

// incapable says which capability an operation or its flags need that the endpoint does not
// have, or nothing. Providers take such an operation, and do it without: tcp lets one with a
// fence overtake others, and sockets and shm keep the buffer of a tagged multi-receive for
// good after its first message. Reads, writes and atomic operations never complete on shm and
// on tcp's own of libfabric 2.1, and hold up what comes after them.
func (e *Endpoint) incapable(op *Op) string {
	remote := kinds[op.Kind].atomic || op.Kind == OpRead || op.Kind == OpWrite || op.Kind == OpWriteInject
	if !remote && op.Flags&(Fence|MultiReceive|Peek|Claim|Discard|ToMulticast) == 0 {
		return ""
	}
	has := e.Info().Capabilities()
	switch {
	case kinds[op.Kind].atomic && has&Atomics == 0:
		return "an atomic operation takes an info with Atomics"
	case remote && !kinds[op.Kind].atomic && has&RemoteMemory == 0:
		return "to read or to write a peer's memory takes an info with RemoteMemory"
	case op.Flags&Fence != 0 && has&FencedOperations == 0:
		return "a Fence takes an info with FencedOperations"
	case op.Flags&ToMulticast != 0 && has&Multicast == 0:
		return "to send to a group takes an info with Multicast"
	case op.Kind == OpTaggedReceive && op.Flags&MultiReceive != 0 && has&TaggedMultiReceiveBuffers == 0:
		return "a MultiReceive of tagged messages takes an info with TaggedMultiReceiveBuffers"
	case op.Kind == OpReceive && op.Flags&(Peek|Claim|Discard) != 0 && !peeksWithoutTag(e.provider):
		return "a message without a tag would be received, and not only be looked at"
	case op.Flags&Peek != 0 && peeksAreReceives(e.provider):
		return "shm before libfabric 2.0 takes a peek for a receive, and loses the message"
	}
	return ""
}

// peeksAreReceives says that a provider takes a peek for a receive, of tagged messages too, as
// shm of libfabric 1.x does: the message is lost, and one of more than 4096 bytes has the call
// never return. A peek that finds nothing takes the next message.
func peeksAreReceives(provider string) bool {
	return core(provider) == "shm" && LibraryVersion().Major < 2
}

// peeksWithoutTag says that a provider does not take a peek of an untagged message for a
// receive, as sockets alone does not of those that have been tried.
func peeksWithoutTag(provider string) bool {
	switch core(provider) {
	case "shm", "tcp", "net", "efa":
		return false
	}
	return !strings.HasSuffix(provider, ";ofi_rxm")
}

// tooMuch says that an operation has more buffers, more bytes to inject, or a larger
// immediate than the provider says that it takes. Providers do not look: of more
// they write over their own memory and the peer's, or lose the rest. Receives that get
// one buffer more are left to tooManyBuffers.
func (e *Endpoint) tooMuch(op *Op) bool {
	a := &e.Info().a
	return len(op.Vector) > 1 && uint64(len(op.Vector)) > e.mostParts(op) && !e.spilling(op) ||
		kinds[op.Kind].inject && uint64(len(op.Buf)) > e.mostInjected(op) ||
		op.Flags&Immediate != 0 && a.ImmediateSize < 8 && op.Immediate>>(8*a.ImmediateSize) != 0
}

// howMuch is what tooMuch has found.
func (e *Endpoint) howMuch(op *Op) string {
	a := &e.Info().a
	switch parts := uint64(len(op.Vector)); {
	case parts > 1 && parts > e.mostParts(op):
		return "at most " + strconv.FormatUint(e.mostParts(op), 10) + " buffers, not " + strconv.FormatUint(parts, 10)
	case kinds[op.Kind].inject && uint64(len(op.Buf)) > e.mostInjected(op):
		return "at most " + strconv.FormatUint(e.mostInjected(op), 10) + " bytes can be injected, not " + strconv.Itoa(len(op.Buf))
	}
	return "an immediate has " + strconv.FormatUint(a.ImmediateSize, 10) + " bytes here, and " +
		strconv.FormatUint(op.Immediate, 10) + " has more"
}

// mostInjected is how many bytes an injected operation can have. The writes that efa of libfabric 1.x injects
// within a host go by shm, also where that is forbidden, whatever their length: of one with an immediate that
// is longer than shm's buffers, the rest is lost.
func (e *Endpoint) mostInjected(op *Op) uint64 {
	most := e.Info().a.InjectSize
	if op.Kind == OpWriteInject && olderThanTwo && core(e.provider) == "efa" {
		return min(most, 4096)
	}
	return most
}

// mostParts is how many buffers an operation can have.
func (e *Endpoint) mostParts(op *Op) uint64 {
	a := &e.Info().a
	if kinds[op.Kind].receive {
		return min(max(a.RxVectors, 1), cgo.MaxVectors)
	}
	return min(max(a.TxVectors, 1), cgo.MaxVectors)
}

// undirected says of endpoints that untagged receives do not look at the peer
// that they name: tcp's own, from libfabric 1.18 on, although they say that they
// can.
func undirected(i *Info) bool {
	return i.Provider() == "tcp" && i.Endpoint() == ReliableDatagram && i.Capabilities()&DirectedReceive != 0
}

// flagsOf are those that an operation of the sending side has in libfabric.
func (e *Endpoint) flagsOf(op *Op) OpFlags {
	if op.Flags == 0 {
		return e.sendFlags
	}
	return op.Flags
}

// emptyTooMuch says why an operation with nothing in it is not for the provider,
// or nothing.
func (e *Endpoint) emptyTooMuch(op *Op) string {
	why := ""
	switch op.Kind {
	case OpSend, OpTaggedSend, OpWrite:
		if e.flagsOf(op)&DeliveryComplete != 0 && olderThanTwo && core(e.provider) == "shm" {
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
