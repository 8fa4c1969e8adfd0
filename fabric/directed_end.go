package fabric

import (
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// losesDirected says of providers that fi_cancel of an untagged receive from one peer ends the process:
// those that have their list of receives in common with each other, in libfabric after 1.17.
func losesDirected(provider string) bool {
	if v := LibraryVersion(); v.Major < 2 && v.Minor <= 17 {
		return false
	}
	return core(provider) == "shm" || core(provider) == "efa" || fetchesOverConnections(provider)
}

// cancelDirected is Cancel of such a receive.
func (q *CompletionQueue) cancelDirected(e *Endpoint, index uint32) error {
	const op = "cancel of a receive from a peer"
	s := &q.table[index]
	most := 0
	for i := range q.table {
		if o := &q.table[i]; o.busy && o.kind == s.kind && o.peer == s.peer {
			most++
		}
	}
	raw := e.raw
	if e.connection.of != nil {
		raw = e.connection.of.raw
	}
	gone, code := q.slots.CancelDirected(raw, int(index), s.peer, most)
	switch {
	case gone:
		q.kept = append(q.kept, Completion{
			Context: s.context, Kind: s.kind, Source: AddressAny, Released: s.flags&MultiReceive != 0,
			Err: &Error{Op: s.kind.String(), Provider: q.provider, Errno: Errno(syscall.ECANCELED)},
		})
		q.giveLater(index)
	case code == cgo.NoSystem:
		return &Error{
			Op: op, Provider: e.provider, Errno: Errno(syscall.EOPNOTSUPP),
			Detail: "fi_cancel of libfabric " + LibraryVersion().String() + " would end the process",
		}
	case code != 0:
		return fail(op, e.provider, int(code))
	}
	return nil
}
