package fabrictest

import (
	"bytes"

	"github.com/weft-go/weft/fabric"
)

// forbidden are accesses that their target must refuse.
var forbidden = []struct {
	name   string
	access fabric.Access
	kind   fabric.OpKind
	change func(*fabric.Remote)
}{
	{"wrong key, write", fabric.AccessAll, fabric.OpWrite, func(r *fabric.Remote) { r.Key += 1000 }},
	{"wrong key, read", fabric.AccessAll, fabric.OpRead, func(r *fabric.Remote) { r.Key += 1000 }},
	{"beyond the end, write", fabric.AccessAll, fabric.OpWrite, func(r *fabric.Remote) { r.Address += 4096 - 63 }},
	{"beyond the end, read", fabric.AccessAll, fabric.OpRead, func(r *fabric.Remote) { r.Address += 4096 - 63 }},
	{"only to be read, write", fabric.AccessRemoteRead, fabric.OpWrite, func(*fabric.Remote) {}},
	{"only to be written, read", fabric.AccessRemoteWrite, fabric.OpRead, func(*fabric.Remote) {}},
}

// A peer that uses a wrong key, goes beyond the region or does what it was not
// registered for gets an error, and nothing changes.
func refusedWithError(t *trial) {
	for _, c := range forbidden {
		t.sub(c.name, func(t *trial) {
			s := openSite(t, t.hints(fabric.ReliableDatagram, remoteAccess))
			a, _ := s.pair(t, nil, nil)
			memory, mine, where := s.guarded(t, c.access)
			a.allowed(t, c.access, where)
			c.change(&where)
			// Without the flag, a write is complete before the peer has looked.
			op := a.post(t, fabric.Op{Kind: c.kind, Peer: a.peer, Buf: mine, Remote: where, Flags: fabric.DeliveryComplete, Fixed: true})
			err := op.Err
			if op.Result == fabric.Posted {
				err = a.await(t).Err
			}
			anError(t, err)
			untouched(t, memory, mine)
		})
	}
}

// Even where the one who asks is not told, nothing changes: neither where the
// provider has virtual addresses if it likes, nor with offsets.
func refusedWithoutTrace(t *trial) {
	t.sub("addresses", func(t *trial) { withoutTrace(t, everyMemoryMode) })
	t.sub("offsets", func(t *trial) { withoutTrace(t, everyMemoryMode&^fabric.VirtualAddresses) })
}

func withoutTrace(t *trial, mode fabric.MemoryMode) {
	for _, c := range forbidden {
		t.sub(c.name, func(t *trial) {
			h := t.hints(fabric.ReliableDatagram, remoteAccess)
			h.MemoryMode = mode
			s := openSite(t, h)
			a, b := s.pair(t, nil, nil)
			memory, mine, where := s.guarded(t, c.access)
			a.allowed(t, c.access, where)
			c.change(&where)
			a.post(t, fabric.Op{Kind: c.kind, Peer: a.peer, Buf: mine, Remote: where, Fixed: true})
			for range 1000 {
				a.turn(t, nil)
				b.turn(t, nil)
			}
			untouched(t, memory, mine)
		})
	}
}

// guarded is a registered page between two that are not, memory of one's own,
// and how the first 64 bytes of the page are named.
func (s *site) guarded(t *trial, access fabric.Access) (memory, mine []byte, where fabric.Remote) {
	t.Helper()
	memory, mine = mapped(t, 3*4096), mapped(t, 64)
	for i := range memory {
		memory[i] = 0xaa
	}
	return memory, mine, at(t, s.register(t, access, memory[4096:8192]), 0, 64)
}

// allowed does what the region is registered for: it works. The write comes first: it has
// its end once the two have had each other's handshake, before which the provider of efa reads
// where the device would.
func (s *station) allowed(t *trial, access fabric.Access, where fabric.Remote) {
	t.Helper()
	same := bytes.Repeat([]byte{0xaa}, 64)
	if access.Has(fabric.AccessRemoteWrite) {
		s.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: s.peer, Buf: same, Remote: where, Flags: fabric.DeliveryComplete})
		s.done(t)
	}
	if access.Has(fabric.AccessRemoteRead) {
		got := make([]byte, 64)
		s.must(t, fabric.Op{Kind: fabric.OpRead, Peer: s.peer, Buf: got, Remote: where})
		s.done(t)
		equal(t, same, got)
	}
}

func untouched(t *trial, memory, mine []byte) {
	t.Helper()
	equal(t, len(memory), bytes.Count(memory, []byte{0xaa}), "bytes of the target that are as they were")
	equal(t, len(mine), bytes.Count(mine, []byte{0}), "bytes of one's own that are as they were")
}
