package fabric

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weft-go/weft/cgo"
)

// ofi_rxm has a long message fetched from its sender by whoever receives it. If the sender is
// gone by then, libfabric ends the process, or asks whom the place of the connection in memory
// was given to, who never answers. It is kept from that, and what such a receive gets is an error.
// In 2.x a message of up to 128 KiB comes in segments instead. If the connection ends after some
// of them, libfabric looks for the receive in the wrong place, and ends the process. It is kept from
// that, too (cgo/segments.c), and none is sent in segments, unless the environment says which are.

// rxmBufferSize is the variable that says how long the buffers are in which messages come.
const (
	rxmBufferSize = "FI_OFI_RXM_BUFFER_SIZE"
	usualBuffers  = 16 << 10
	// leastMarked have a place for the mark of MarkMessages.
	leastMarked = 1024
)

// rxmBuffers is how long they are. 0: it is not known.
func rxmBuffers() int {
	length, set := os.LookupEnv(rxmBufferSize)
	if !set {
		return usualBuffers
	}
	n, err := strconv.ParseInt(strings.TrimSpace(length), 0, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}

// fetchesOverConnections says of providers that messages are fetched.
func fetchesOverConnections(provider string) bool { return strings.HasSuffix(provider, ";ofi_rxm") }

// namesSources are capabilities that an endpoint is opened with beyond its info. ofi_rxm looks for
// the connection that a message came by when it comes only if the endpoint is to know sources, and
// otherwise when it is received, or in 2.x when a peer is inserted: it ends the process if there is
// none any more.
func namesSources(i *Info) uint64 {
	if !fetchesOverConnections(i.Provider()) || i.Capabilities()&(SourceAddress|DirectedReceive) != 0 {
		return 0
	}
	return uint64(DirectedReceive)
}

// markMessages is for a domain of such a provider that was just opened.
func markMessages(d cgo.Domain) {
	if rxmBuffers() < leastMarked {
		cgo.NoPlaceForMarks()
	}
	d.MarkMessages()
}

// outliveSenders is for an endpoint of such a provider that has been enabled.
func outliveSenders(e *Endpoint) {
	e.raw.GuardFetches()
	if os.Getenv("FI_OFI_RXM_SAR_LIMIT") == "" {
		e.raw.SendUnsegmented(uint64(rxmBuffers()))
	}
}

// endSegments is for an endpoint that is to be closed.
func (e *Endpoint) endSegments() {
	if olderThanTwo || !fetchesOverConnections(e.provider) || e.severed {
		return
	}
	for end := time.Now().Add(patienceWithThread); e.raw.EndSegments() > 0 && time.Now().Before(end); time.Sleep(lookAgain) {
		e.gather(true)
	}
}

// removeInside removes peers in libfabric. Where that ends their connections, ofi_rxm of 2.x ends the
// process if one has brought a part of a message: the peers stay then. It reads what there is as it ends
// one, which may be a part of a message by another.
func (v *AddressVector) removeInside(raw []uint64) cgo.Code {
	if cleansUp && !olderThanTwo && fetchesOverConnections(v.provider) {
		defer v.domain.excludeTurns()()
		for i := range raw {
			if cgo.AmidSegments() {
				break
			}
			if code := v.raw.RemoveMany(raw[i : i+1]); code != 0 {
				return code
			}
		}
		return 0
	}
	return v.raw.RemoveMany(raw)
}

// lose ends a receive that was just posted, and got a message whose sender is gone.
func (e *Endpoint) lose(index uint32, messages int) {
	q := e.receive
	s := &q.table[index]
	if s.drained {
		q.kept = append(q.kept, Completion{Context: s.context, Kind: s.kind, Source: AddressAny})
		q.giveLater(index)
		return
	}
	for range messages {
		q.kept = append(q.kept, Completion{
			Context: s.context, Kind: s.kind, Source: AddressAny, Released: s.flags&MultiReceive != 0,
			Err: &Error{
				Op: s.kind.String(), Provider: q.provider, Errno: Errno(syscall.ECONNABORTED),
				Detail: "the sender of the message was closed or has ended before it was received",
			},
		})
	}
	for _, c := range e.countsReceives {
		c.raw.AddErrors(uint64(messages))
	}
	q.giveLater(index)
}
