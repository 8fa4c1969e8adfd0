package fabric

import (
	"strings"
	"syscall"
)

// ofi_rxm has a long message fetched from its sender by whoever receives it. If the sender is
// gone by then, libfabric ends the process, or asks whom the place of the connection in memory
// was given to, for ever. It is kept from that, and what such a receive gets is an error.

// fetchesOverConnections says of providers that they do so.
func fetchesOverConnections(provider string) bool { return strings.HasSuffix(provider, ";ofi_rxm") }

// lose ends a receive that got a message whose sender is gone. One for several messages goes on,
// and may have got several of those.
func (e *Endpoint) lose(index uint32, messages int) {
	q := e.receive
	s := &q.table[index]
	for range messages {
		q.kept = append(q.kept, Completion{
			Context: s.context, Kind: s.kind, Source: AddressAny,
			Err: &Error{
				Op: s.kind.String(), Provider: q.provider, Errno: Errno(syscall.ECONNABORTED),
				Detail: "the sender of the message was closed or has ended before it was received",
			},
		})
	}
	for _, c := range e.countsReceives {
		c.raw.AddErrors(uint64(messages))
	}
	if s.flags&MultiReceive == 0 {
		q.giveLater(index)
	}
}
