package fabrictest

import "github.com/weft-go/weft/fabric"

// Completions of each format have what it says, and nothing else.
func everyFormat(t *trial) {
	for _, format := range []fabric.CompletionFormat{
		fabric.CompletionTagged, fabric.CompletionData, fabric.CompletionMessage, fabric.CompletionContext,
	} {
		t.sub(format.String(), func(t *trial) { oneFormat(t, format) })
	}
}

func oneFormat(t *trial, format fabric.CompletionFormat) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, bothMessages))
	open := func() *station {
		return s.open(t, s.info, fabric.Bindings{Send: s.queueOf(t, fabric.CompletionQueueConfig{Size: 64, Format: format})})
	}
	a, b := open(), open()
	acquaint(t, a, b)
	// More than are read at once.
	const count = 100
	got := make([]byte, 32)
	for i := range uint64(count) {
		b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: i, Buf: got, Context: 1000 + i})
		a.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: i, Buf: counting(20), Context: i})
		c := a.done(t)
		equal(t, fabric.Completion{Context: i, Kind: fabric.OpTaggedSend, Source: fabric.AddressAny}, c)
		c = b.done(t)
		want := fabric.Completion{Context: 1000 + i, Kind: fabric.OpTaggedReceive, Tag: i, Len: 20, Source: c.Source}
		equal(t, has(format, want), c)
		equal(t, counting(20), got[:20])
	}
	// Several in one look.
	var receives, sends []fabric.Op
	for i := range uint64(16) {
		receives = append(receives, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: i, Buf: make([]byte, 8), Context: i})
		sends = append(sends, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: i, Buf: counting(int(i % 8)), Context: i})
	}
	fromA, fromB := carry(t, a, b, sends, receives, len(sends), len(receives))
	seen := make(map[uint64]bool)
	for _, c := range append(fromA, fromB...) {
		noError(t, c.Err)
		key := uint64(c.Kind)<<32 | c.Context
		isTrue(t, !seen[key], "%v %d twice", c.Kind, c.Context)
		seen[key] = true
		if c.Kind == fabric.OpTaggedReceive {
			equal(t, has(format, fabric.Completion{Tag: c.Context, Len: int(c.Context % 8)}).Len, c.Len)
			equal(t, counting(int(c.Context%8)), receives[c.Context].Buf[:c.Context%8])
		}
	}
	equal(t, len(sends)+len(receives), len(seen))

	if s.info.ImmediateSize() > 0 {
		b.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got})
		a.must(t, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: counting(3), Flags: fabric.Immediate, Immediate: 7})
		a.done(t)
		c := b.done(t)
		want := fabric.Completion{Kind: fabric.OpReceive, Len: 3, HasImmediate: true, Immediate: 7, Source: c.Source}
		equal(t, has(format, want), c)
	}
	formatOfFailures(t, a, b, got)
	if format >= fabric.CompletionMessage {
		op := fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Flags: fabric.MultiReceive}
		errorIs(t, b.post(t, op).Err, fabric.ErrInvalid)
	}
	idle(t, a, b)
}

// has leaves of a completion what the format has.
func has(f fabric.CompletionFormat, c fabric.Completion) fabric.Completion {
	if f >= fabric.CompletionData {
		c.Tag = 0
	}
	if f >= fabric.CompletionMessage {
		c.HasImmediate, c.Immediate = false, 0
	}
	if f >= fabric.CompletionContext {
		c.Len = 0
	}
	return c
}

// formatOfFailures: what has failed says so in every format, and nobody else.
func formatOfFailures(t *trial, a, b *station, got []byte) {
	t.Helper()
	op := b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: got, Context: 5})
	noError(t, b.e.Cancel(op.Token))
	c := b.await(t)
	errorIs(t, c.Err, fabric.ErrCanceled)
	equal(t, 5, c.Context)
	b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: got[:4], Context: 6})
	a.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 2, Buf: counting(20)})
	c = b.await(t)
	errorIs(t, c.Err, fabric.ErrTruncated)
	equal(t, 6, c.Context)
	a.done(t)
}
