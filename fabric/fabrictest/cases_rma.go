package fabrictest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/weft-go/weft/fabric"
)

var remoteMemoryCases = []named{
	{"read and write", readAndWrite},
	{"several pieces", severalPieces},
	{"closed when delivered", closedWhenDelivered},
	{"with immediate", writeWithImmediate},
	{"inject", injectedWrite},
	{"fenced", fencedRead},
	{"memory modes", everyMode},
	{"refused with an error", refusedWithError},
	{"refused without a trace", refusedWithoutTrace},
}

// Memory of a peer is written and read, from one buffer and from two.
func readAndWrite(t *trial) {
	a, b := pairOf(t, fabric.Messages|fabric.RemoteMemory)
	const size = 1 << 20
	memory, remote := b.site.shared(t, size)
	for _, n := range []int{1, 8, 100, 4096, 70000, size} {
		at := (size - n) / 2
		there := fabric.Remote{Address: remote.Address + uint64(at), Key: remote.Key}
		want := counting(n)
		a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: want, Remote: there, Flags: fabric.DeliveryComplete, Context: 1})
		c := a.done(t)
		equal(t, 1, c.Context)
		equal(t, fabric.OpWrite, c.Kind)
		isTrue(t, bytes.Equal(want, memory[at:at+n]), "%d bytes written", n)

		got := make([]byte, n)
		a.must(t, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Buf: got, Remote: there, Context: 2})
		c = a.done(t)
		equal(t, 2, c.Context)
		equal(t, fabric.OpRead, c.Kind)
		isTrue(t, bytes.Equal(want, got), "%d bytes read", n)

		// With nothing in one of them, efa refuses it.
		if a.site.info.Send().Vectors > 1 && n > 1 {
			first, second := make([]byte, n/2), make([]byte, n-n/2)
			a.must(t, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Vector: [][]byte{first, second}, Remote: there})
			a.done(t)
			isTrue(t, bytes.Equal(want, append(first, second...)), "%d bytes read into two", n)
		}
	}
	idle(t, a, b)
}

// Several pieces of a peer's memory, in one region and in two, are written and read
// at once.
func severalPieces(t *trial) {
	a, b := pairOf(t, fabric.Messages|fabric.RemoteMemory)
	most := int(min(a.site.info.Send().RemoteVectors, 8))
	memory, remote := b.site.shared(t, 4096)
	other, otherRemote := b.site.shared(t, 4096)
	piece := func(i, length int) fabric.RemotePart {
		r := remote
		if i%2 == 1 {
			r = otherRemote
		}
		r.Address += uint64(100 * i)
		return fabric.RemotePart{Remote: r, Len: uint64(length)}
	}
	for count := 1; count <= most; count++ {
		var pieces []fabric.RemotePart
		total := 0
		for i := range count {
			pieces = append(pieces, piece(i, 10+i))
			total += 10 + i
		}
		want := counting(total)
		for i := range want {
			want[i] += byte(count)
		}
		a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: want, Remotes: pieces, Flags: fabric.DeliveryComplete, Context: 1})
		equal(t, 1, a.done(t).Context)
		var there []byte
		for i := range count {
			m := memory
			if i%2 == 1 {
				m = other
			}
			there = append(there, m[100*i:][:10+i]...)
		}
		equal(t, want, there, "%d pieces written", count)
		got := make([]byte, total)
		op := fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Buf: got, Remotes: pieces}
		if a.site.info.Send().Vectors > 1 {
			// The buffers here end elsewhere than those there.
			op.Buf, op.Vector = nil, [][]byte{got[:7], got[7:]}
		}
		a.must(t, op)
		a.done(t)
		equal(t, want, got, "%d pieces read", count)
	}
	pieces := make([]fabric.RemotePart, most+1)
	for i := range pieces {
		pieces[i] = piece(i, 1)
	}
	for _, op := range []fabric.Op{
		{Kind: fabric.OpWrite, Buf: make([]byte, most+1), Remotes: pieces},
		{Kind: fabric.OpRead, Buf: make([]byte, 2), Remotes: pieces[:1]},
		{Kind: fabric.OpWrite, Buf: make([]byte, 1), Remotes: pieces[:1], Remote: remote},
		{Kind: fabric.OpWriteInject, Buf: make([]byte, 1), Remotes: pieces[:1]},
	} {
		op.Peer = a.peer
		errorIs(t, a.post(t, op).Err, fabric.ErrInvalid)
	}
	idle(t, a, b)
}

// The source of a write that has been delivered can be closed at once: nothing looks at it any
// more, and what comes next is carried.
func closedWhenDelivered(t *trial) {
	a, b := pairOf(t, fabric.Messages|fabric.RemoteMemory)
	memory, remote := b.site.shared(t, 12_000)
	for i := range 300 {
		mine := counting(1 + i*53%len(memory))
		source := a.site.register(t, fabric.AccessWrite, mine)
		a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: mine, Descriptor: source.Descriptor(), Remote: remote, Flags: fabric.DeliveryComplete, Fixed: true})
		a.done(t)
		noError(t, source.Close())
		isTrue(t, bytes.Equal(mine, memory[:len(mine)]), "%d bytes written", len(mine))
	}
	idle(t, a, b)
}

// A write with an immediate is announced at the target, which posted nothing.
func writeWithImmediate(t *trial) {
	a, b := pairOf(t, fabric.Messages|fabric.RemoteMemory)
	memory, remote := b.site.shared(t, 4096)
	for i, op := range []fabric.Op{
		{Kind: fabric.OpWrite, Buf: []byte("plain")},
		{Kind: fabric.OpWriteInject, Buf: []byte("inject")},
		{Kind: fabric.OpWrite, Flags: fabric.TransmitComplete, Buf: []byte("message form")},
	} {
		t.sub(fmt.Sprint(i), func(t *trial) {
			op.Peer, op.Remote, op.Immediate = a.peer, remote, uint64(1000+i)
			op.Flags |= fabric.Immediate
			a.must(t, op)
			c := b.done(t)
			equal(t, fabric.OpRemoteWrite, c.Kind)
			isTrue(t, c.HasImmediate, "without immediate data")
			equal(t, uint64(1000+i), c.Immediate)
			equal(t, string(op.Buf), string(memory[:len(op.Buf)]))
			if op.Kind == fabric.OpWrite {
				a.done(t)
			}
		})
	}
}

func injectedWrite(t *trial) {
	a, b := pairOf(t, fabric.Messages|fabric.RemoteMemory)
	memory, remote := b.site.shared(t, 64)
	a.must(t, fabric.Op{Kind: fabric.OpWriteInject, Peer: a.peer, Buf: []byte("injected"), Remote: remote})
	// A read behind it sees it, once it is there.
	got := make([]byte, 8)
	t.until("bytes of the write", func(int) bool {
		a.must(t, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Buf: got, Remote: remote})
		a.done(t)
		return string(got) == "injected"
	})
	equal(t, "injected", string(memory[:8]))
	idle(t, a, b)
}

// A read with a fence sees what the write before it has written, however long that is,
// and whether it is posted in the same turn or in the next.
func fencedRead(t *trial) {
	a, b := pairOf(t, fabric.Messages|fabric.RemoteMemory|fabric.FencedOperations)
	const size = 1 << 20
	memory, remote := b.site.shared(t, size)
	for round := range 5 {
		want := bytes.Repeat([]byte{byte(round + 1)}, size)
		got := make([]byte, size)
		posts := []fabric.Op{
			{Kind: fabric.OpWrite, Peer: a.peer, Buf: want, Remote: remote},
			{Kind: fabric.OpRead, Peer: a.peer, Buf: got, Remote: remote, Flags: fabric.Fence},
		}
		if round%2 == 0 {
			done, _ := carry(t, a, b, posts, nil, 2, 0)
			for _, c := range done {
				noError(t, c.Err)
			}
		} else {
			a.must(t, posts[0])
			a.must(t, posts[1])
			a.done(t)
			a.done(t)
		}
		isTrue(t, bytes.Equal(want, got), "the read of round %d was before its write", round)
		isTrue(t, bytes.Equal(want, memory), "written")
	}
	idle(t, a, b)
}

// What Remote says is right in every memory mode that a provider offers: with
// virtual addresses and with offsets, with keys of the provider's and of one's
// own.
func everyMode(t *trial) {
	for _, mode := range []fabric.MemoryMode{
		0, fabric.VirtualAddresses, fabric.ProviderKeys, fabric.VirtualAddresses | fabric.ProviderKeys, everyMemoryMode,
	} {
		t.sub(strings.ReplaceAll(mode.String(), " ", ""), func(t *trial) {
			h := t.hints(fabric.ReliableDatagram, remoteAccess)
			h.MemoryMode = mode
			accessParts(t, openSite(t, h), mode)
		})
	}
}

// accessParts writes and reads parts of a region, by what its owner told.
func accessParts(t *trial, s *site, mode fabric.MemoryMode) {
	zero(t, s.info.MemoryMode()&^mode, "what was not offered must not be asked for")
	a, b := s.pair(t, nil, nil)
	const size = 3 * 4096
	there, here := mapped(t, size), mapped(t, size)
	target := s.register(t, fabric.AccessRemoteRead|fabric.AccessRemoteWrite, there)
	source := s.register(t, fabric.AccessRead|fabric.AccessWrite, here)

	// What the peer is told travels as bytes.
	remote, err := target.Remote()
	noError(t, err)
	told, err := remote.MarshalBinary()
	noError(t, err)
	var heard fabric.RemoteRegion
	noError(t, heard.UnmarshalBinary(told))
	known, err := s.domain.MapRemote(heard)
	noError(t, err)
	closeAtEnd(t, known)

	for _, part := range []struct{ from, length int }{{0, size}, {0, 1}, {4095, 2}, {size - 5, 5}, {100, 5000}} {
		clear(there)
		copy(here, counting(size))
		want := counting(size)[part.from:][:part.length]
		where, err := known.At(uint64(part.from), uint64(part.length))
		noError(t, err)
		direct, err := target.RemoteOf(there[part.from:][:part.length])
		noError(t, err)
		equal(t, where, direct)
		mine := here[part.from:][:part.length]
		a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: mine, Descriptor: source.Descriptor(), Remote: where, Flags: fabric.DeliveryComplete, Fixed: true})
		a.done(t)
		isTrue(t, bytes.Equal(want, there[part.from:][:part.length]), "written")
		equal(t, part.from, bytes.Count(there[:part.from], []byte{0}), "nothing before it")
		behind := there[part.from+part.length:]
		equal(t, len(behind), bytes.Count(behind, []byte{0}), "nothing behind it")

		clear(mine)
		a.must(t, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Buf: mine, Descriptor: source.Descriptor(), Remote: where, Fixed: true})
		a.done(t)
		isTrue(t, bytes.Equal(counting(size), here), "read back")
	}
	idle(t, a, b)
}
