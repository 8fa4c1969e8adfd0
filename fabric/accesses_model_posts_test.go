package fabric_test

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/fabric"
)

// The operations of the model: what is drawn, and what it does to the memory beside.

func (m *accessModel) side(t *rapid.T) *accessSide {
	return m.sides[rapid.IntRange(0, len(m.sides)-1).Draw(t, "side")]
}

func accessLength(t *rapid.T) int {
	return rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(0, 300), rapid.IntRange(0, 20_000), rapid.IntRange(100_000, 140_000)).Draw(t, "length")
}

// place draws a piece of a side's memory that peers may reach so, with as many bytes or less, and whole values.
func (m *accessModel) place(t *rapid.T, to *accessSide, need fabric.Access, length, size int) (part fabric.RemotePart, span accessSpan, of *accessRegion) {
	var fit []*accessRegion
	for _, r := range to.regions {
		// Values of 128 bits are where processors have them, by the offset, too.
		if r.Access().Has(need) && (size < 16 || r.from%size == 0) && roundUp(r.from, size)+size <= r.to {
			fit = append(fit, r)
		}
	}
	if len(fit) == 0 {
		m.openRegion(t, to, true)
		fit = to.regions[len(to.regions)-1:]
	}
	of = rapid.SampledFrom(fit).Draw(t, "region")
	first := roundUp(of.from, size)
	most := (of.to - first) / size
	n := min(length/size, most)
	if size > 1 {
		n = max(n, 1)
	}
	from := first + size*rapid.IntRange(0, most-n).Draw(t, "place")
	span = accessSpan{to, from, from + n*size}
	remote, err := of.remote.At(uint64(from-of.from), uint64(n*size))
	require.NoError(t, err)
	return fabric.RemotePart{Remote: remote, Len: uint64(n * size)}, span, of
}

func roundUp(n, size int) int { return (n + size - 1) / size * size }

// places draws where an operation goes, in one piece or several.
func (m *accessModel) places(t *rapid.T, a *access, need fabric.Access, length, size int, one bool) {
	pieces := 0
	if most := int(min(m.info.Send().RemoteVectors, 4)); !one && rapid.IntRange(0, 3).Draw(t, "there in pieces") == 0 {
		pieces = rapid.IntRange(1, most).Draw(t, "pieces there")
	}
	if pieces == 0 {
		part, span, of := m.place(t, a.to, need, length, size)
		a.op.Remote = part.Remote
		a.spans, a.regions = []accessSpan{span}, []*accessRegion{of}
		return
	}
	for range pieces {
		part, span, of := m.place(t, a.to, need, length/pieces, size)
		if slices.ContainsFunc(a.spans, span.overlaps) {
			continue
		}
		a.op.Remotes = append(a.op.Remotes, part)
		a.spans, a.regions = append(a.spans, span), append(a.regions, of)
	}
}

func (a *access) length() (n int) {
	for _, s := range a.spans {
		n += s.to - s.from
	}
	return n
}

// now is what is there now, as the model has it.
func (a *access) now() (all []byte) {
	for _, s := range a.spans {
		all = append(all, s.side.want[s.from:s.to]...)
	}
	return all
}

// buffer is memory of the operation's own, on the heap or in the side's region.
func (m *accessModel) buffer(a *access, own bool, content, want []byte) ([]byte, fabric.Descriptor) {
	n := len(content)
	b := accessBuffer{want: want, own: own}
	var d fabric.Descriptor
	if s := a.from; own && s.ownUsed+n+guard+16 <= len(s.own) {
		b.memory = s.own[s.ownUsed : s.ownUsed+n+guard]
		s.ownUsed += roundUp(n+guard, 16)
		d = s.ownRegion.Descriptor()
	} else {
		b.memory = make([]byte, n+guard)
	}
	copy(b.memory, content)
	copy(b.memory[n:], bytes.Repeat([]byte{0xee}, guard))
	a.buffers = append(a.buffers, b)
	return b.memory[:n:n], d
}

// mine gives an operation its buffers, in pieces of whole values of a size, some of them empty.
func (m *accessModel) mine(t *rapid.T, a *access, content, want []byte, size int) {
	own := rapid.Bool().Draw(t, "of its region")
	a.op.Fixed = own
	n := 0
	if !a.injected() {
		n = rapid.IntRange(0, int(min(m.info.Send().Vectors, 3))).Draw(t, "buffers")
	}
	if n == 0 {
		a.op.Buf, a.op.Descriptor = m.buffer(a, own, content, want)
		return
	}
	from := 0
	for i := range n {
		to := len(content)
		if i < n-1 {
			to = from + size*rapid.IntRange(0, (len(content)-from)/size).Draw(t, "cut")
		}
		b, d := m.buffer(a, own, content[from:to], want[from:to])
		a.op.Vector, a.op.Descriptors = append(a.op.Vector, b), append(a.op.Descriptors, d)
		from = to
	}
	if !own {
		a.op.Descriptors = nil
	}
}

// flags draws those of an operation.
func (m *accessModel) flags(t *rapid.T, a *access) {
	if a.op.Kind == fabric.OpWrite || a.op.Kind == fabric.OpWriteInject {
		if size := m.info.ImmediateSize(); size > 0 && rapid.IntRange(0, 3).Draw(t, "immediate") == 0 {
			a.op.Flags |= fabric.Immediate
			a.op.Immediate = a.number & (1<<(8*min(size, 4)) - 1)
		}
	}
	if a.injected() {
		return
	}
	a.op.Flags |= rapid.SampledFrom([]fabric.OpFlags{
		0, 0, 0, fabric.WithCompletion, fabric.InjectComplete, fabric.TransmitComplete, fabric.DeliveryComplete, fabric.DeliveryComplete,
	}).Draw(t, "flags")
	if m.limits.caps&fabric.FencedOperations != 0 && rapid.IntRange(0, 5).Draw(t, "fence") == 0 {
		a.op.Flags |= fabric.Fence
	}
}

// ordered says that the provider keeps the order of two operations, the second of which is to be posted.
func (m *accessModel) ordered(first, second *access) bool {
	if first.deferred || second.deferred || first.from != second.from || first.to != second.to {
		return false
	}
	if second.epoch > first.epoch {
		return true
	}
	order, sizes := m.info.Send().Order, m.info.OrderedSizes()
	most := uint64(max(first.length(), second.length()))
	if (first.op.Atomic == nil) != (second.op.Atomic == nil) || first.op.Atomic != nil && (first.reads() || second.reads()) {
		return false
	}
	switch {
	case first.reads() && second.reads():
		return true
	case first.op.Atomic != nil:
		return order&fabric.AtomicWriteAfterWrite != 0 && most <= sizes.WriteAfterWrite
	case second.reads():
		return order&fabric.MemoryReadAfterWrite != 0 && most <= sizes.ReadAfterWrite
	case first.reads():
		return order&fabric.MemoryWriteAfterRead != 0 && most <= sizes.WriteAfterRead
	}
	return order&fabric.MemoryWriteAfterWrite != 0 && most <= sizes.WriteAfterWrite
}

// clear waits for what is under way if the operation is not to meet it.
func (m *accessModel) clear(t *rapid.T, a *access) {
	pair := [2]int{a.from.number, a.to.number}
	if a.op.Flags&fabric.Fence != 0 {
		m.epochs[pair]++
	}
	a.epoch = m.epochs[pair]
	var met []*access
	for _, f := range m.flying {
		if !(f.writes() || a.writes()) {
			continue
		}
		for _, s := range f.spans {
			if slices.ContainsFunc(a.spans, s.overlaps) {
				met = append(met, f)
				break
			}
		}
	}
	if slices.ContainsFunc(met, func(f *access) bool { return !m.ordered(f, a) }) {
		m.settle(t)
		a.epoch = 0
		return
	}
	for _, f := range met {
		f.overtaken = true
	}
}

// begin is of an operation that is all drawn: its writes are there from now on.
func (m *accessModel) begin(t *rapid.T, a *access) {
	if a.writes() {
		at := 0
		for _, s := range a.spans {
			at += copy(s.side.want[s.from:s.to], a.after[at:])
		}
	}
	events := map[fabric.OpKind][2]fabric.CounterEvents{
		fabric.OpRead:  {fabric.CountReads, fabric.CountRemoteReads},
		fabric.OpFetch: {fabric.CountReads, fabric.CountRemoteReads}, fabric.OpCompare: {fabric.CountReads, fabric.CountRemoteReads},
	}[a.op.Kind]
	if events[0] == 0 {
		events = [2]fabric.CounterEvents{fabric.CountWrites, fabric.CountRemoteWrites}
	}
	if m.info.Provider() == "sockets" && a.op.Atomic != nil {
		events[1] = fabric.CountRemoteWrites // of all kinds
	}
	a.from.counts[events[0]]++
	if a.injected() && m.info.Provider() == "efa" && fabric.LibraryVersion().Major < 2 {
		a.from.mayMiss++
	}
	a.to.counts[events[1]]++
	for _, r := range a.regions {
		r.uses++
	}
	t.Logf("%v", a)
	m.flying = append(m.flying, a)
	a.from.posts = append(a.from.posts, a)
	if rapid.IntRange(0, 2).Draw(t, "at once") == 0 {
		m.flush(t, a.from)
	}
}

func (m *accessModel) newAccess(t *rapid.T, kind fabric.OpKind) *access {
	m.number++
	a := &access{from: m.side(t), to: m.side(t), number: m.number}
	a.op = fabric.Op{Kind: kind, Peer: a.from.peers[a.to.number], Context: a.number}
	return a
}

// pattern is what operations write.
func (a *access) pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(a.number*13 + uint64(i)*7 + uint64(i)>>8)
	}
	return b
}

// access reads or writes.
func (m *accessModel) access(t *rapid.T) {
	kind := rapid.SampledFrom([]fabric.OpKind{fabric.OpRead, fabric.OpWrite, fabric.OpWrite, fabric.OpWriteInject}).Draw(t, "kind")
	a, length := m.newAccess(t, kind), accessLength(t)
	need := fabric.AccessRemoteWrite
	switch kind {
	case fabric.OpRead:
		need = fabric.AccessRemoteRead
	case fabric.OpWriteInject:
		length = min(length, mostWriteInjected(m.info))
	}
	m.places(t, a, need, length, 1, a.injected())
	m.flags(t, a)
	if a.length() == 0 && m.refusesEmptyAccess(a) {
		return
	}
	m.clear(t, a)
	if kind == fabric.OpRead {
		m.mine(t, a, a.pattern(a.length()), a.now(), 1)
	} else {
		a.after = a.pattern(a.length())
		m.mine(t, a, a.after, a.after, 1)
	}
	m.begin(t, a)
}

func (m *accessModel) refusesEmptyAccess(a *access) bool {
	switch m.info.Provider() {
	case "shm":
		return a.op.Flags&fabric.DeliveryComplete != 0 && fabric.LibraryVersion().Major < 2
	case "efa":
		return a.op.Kind == fabric.OpRead
	}
	return false
}

// atomic changes values, or fetches them.
func (m *accessModel) atomic(t *rapid.T) {
	if len(m.atomics) == 0 {
		return
	}
	kind := rapid.SampledFrom([]fabric.OpKind{fabric.OpAtomic, fabric.OpAtomicInject, fabric.OpFetch, fabric.OpCompare}).Draw(t, "kind")
	var of []atomicChoice
	for _, c := range m.atomics {
		if c.kind == kind {
			of = append(of, c)
		}
	}
	if len(of) == 0 {
		return
	}
	c := rapid.SampledFrom(of).Draw(t, "atomic")
	size := c.on.Size()
	most := c.limit
	if kind == fabric.OpAtomicInject {
		most = min(most, int(m.info.InjectSize())/size)
	}
	if most == 0 {
		return
	}
	a := m.newAccess(t, kind)
	values := rapid.OneOf(rapid.IntRange(1, min(3, most)), rapid.IntRange(1, most)).Draw(t, "values")
	m.places(t, a, fabric.AccessRemoteRead|fabric.AccessRemoteWrite, values*size, size, a.injected())
	if a.length() > most*size {
		return
	}
	m.flags(t, a)
	if !m.limits.delivered && kind == fabric.OpAtomic {
		a.op.Flags &^= fabric.DeliveryComplete
	}
	a.op.Atomic = &fabric.Atomic{Type: c.on, Operation: c.what}
	m.clear(t, a)
	there, here, compare := a.now(), m.operand(t, a, &c), []byte(nil)
	if kind == fabric.OpCompare {
		compare = m.operand(t, a, &c)
		if rapid.Bool().Draw(t, "as it is") {
			copy(compare, there[:size*rapid.IntRange(0, len(there)/size).Draw(t, "as they are")])
		}
	}
	if a.after = c.combine(there, here, compare); a.after == nil {
		return
	}
	if c.what == fabric.AtomicRead {
		if rapid.Bool().Draw(t, "without an operand") {
			a.op.Atomic.Count = len(there) / size
		} else {
			m.mine(t, a, here, here, size)
		}
	} else {
		m.mine(t, a, here, here, size)
	}
	if a.reads() {
		own := rapid.Bool().Draw(t, "result of its region")
		a.op.Atomic.Result, a.op.Atomic.ResultDescriptor = m.buffer(a, own, a.pattern(len(there)), there)
	}
	if kind == fabric.OpCompare {
		own := rapid.Bool().Draw(t, "compare of its region")
		a.op.Atomic.Compare, a.op.Atomic.CompareDescriptor = m.buffer(a, own, compare, compare)
	}
	m.begin(t, a)
}

// operand is values to combine with, small numbers or any bytes.
func (m *accessModel) operand(t *rapid.T, a *access, c *atomicChoice) []byte {
	n := a.length()
	if !rapid.Bool().Draw(t, "small") {
		return a.pattern(n)
	}
	b := make([]byte, 0, n+16)
	for i := 0; len(b) < n; i++ {
		v := uint8(a.number+uint64(i)*3) % 8
		switch c.on {
		case fabric.Float32, fabric.Complex64:
			b = append(b, encoded(float32(v))...)
		case fabric.Float64, fabric.Complex128:
			b = append(b, encoded(float64(v))...)
		default:
			one := make([]byte, c.on.Size())
			one[0] = v
			b = append(b, one...)
		}
	}
	return b[:n]
}

// tickets has all sides take numbers from one place at the same time: each is one's own.
func (m *accessModel) tickets(t *rapid.T) {
	var most int
	for _, c := range m.atomics {
		if c.kind == fabric.OpFetch && c.on == fabric.Uint64 && c.what == fabric.Sum {
			most = c.limit
		}
	}
	if most == 0 {
		return
	}
	m.settle(t)
	to := m.side(t)
	part, span, _ := m.place(t, to, fabric.AccessRemoteRead|fabric.AccessRemoteWrite, 8, 8)
	first := binary.NativeEndian.Uint64(to.want[span.from:])
	n := rapid.IntRange(1, 20).Draw(t, "tickets")
	t.Logf("%d tickets of %d at %d", n, to.number, span.from)
	got := make(map[uint64]bool)
	var results []*[8]byte
	for range n {
		a := m.newAccess(t, fabric.OpFetch)
		a.to, a.spans, a.overtaken = to, []accessSpan{span}, true
		a.op.Peer, a.op.Remote, a.op.Buf = a.from.peers[to.number], part.Remote, encoded(uint64(1))
		result := new([8]byte)
		a.op.Atomic = &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum, Result: result[:]}
		results = append(results, result)
		a.after = encoded(binary.NativeEndian.Uint64(to.want[span.from:]) + 1)
		m.begin(t, a)
	}
	m.settle(t)
	for _, r := range results {
		got[binary.NativeEndian.Uint64(r[:])-first] = true
	}
	for i := range uint64(n) {
		require.True(t, got[i], "nobody got %d of %v", i, got)
	}
}

// impossible is what is refused before anybody sees it.
func (m *accessModel) impossible(t *rapid.T) {
	a := m.newAccess(t, fabric.OpWrite)
	part, _, _ := m.place(t, a.to, fabric.AccessAll, 16, 16)
	buf := make([]byte, 16)
	op := a.op
	op.Buf, op.Remote = buf, part.Remote
	sum := &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum, Result: buf, Compare: buf}
	tries := map[string]func(){
		"vectors": func() { op.Buf, op.Vector = nil, make([][]byte, m.info.Send().Vectors+1) },
		"both":    func() { op.Vector = [][]byte{buf} },
		"remotes": func() { op.Remotes = []fabric.RemotePart{part} },
		"lengths": func() { op.Remote, op.Remotes = fabric.Remote{}, []fabric.RemotePart{{Remote: part.Remote, Len: 15}} },
		"overflow": func() {
			op.Remote, op.Remotes = fabric.Remote{}, []fabric.RemotePart{{Remote: part.Remote, Len: 1 << 63}, {Remote: part.Remote, Len: 1<<63 + 16}}
		},
		"pieces": func() {
			op.Remote = fabric.Remote{}
			for range m.info.Send().RemoteVectors + 1 {
				op.Remotes = append(op.Remotes, fabric.RemotePart{Remote: part.Remote})
			}
			op.Remotes[0].Len = 16
		},
		"long inject":     func() { op.Kind, op.Buf = fabric.OpWriteInject, make([]byte, m.info.InjectSize()+1) },
		"inject of parts": func() { op.Kind, op.Buf, op.Vector = fabric.OpWriteInject, nil, [][]byte{buf} },
		"flags of inject": func() { op.Kind, op.Flags = fabric.OpWriteInject, fabric.DeliveryComplete },
		"read with data":  func() { op.Kind, op.Flags = fabric.OpRead, fabric.Immediate },
		"no flag of it":   func() { op.Flags = fabric.Peek },
		"end":             func() { op.Remote.Address = ^uint64(0) - 7 },
		"descriptor":      func() { op.Descriptor = 1 << 60 },
		"descriptors":     func() { op.Buf, op.Vector, op.Descriptors = nil, [][]byte{buf}, make([]fabric.Descriptor, 2) },
		"peer":            func() { op.Peer = 77 },
		"no atomic":       func() { op.Kind = fabric.OpAtomic },
		"half a value":    func() { op.Kind, op.Buf, op.Atomic = fabric.OpFetch, buf[:9], sum },
		"result":          func() { op.Kind, op.Buf, op.Atomic = fabric.OpFetch, buf[:8], sum },
		"compare": func() {
			op.Kind, op.Atomic = fabric.OpCompare, &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.CompareSwap, Result: buf, Compare: buf[:8]}
		},
		"sum as compare": func() { op.Kind, op.Atomic = fabric.OpCompare, sum },
		"bits of floats": func() {
			op.Kind, op.Atomic = fabric.OpAtomic, &fabric.Atomic{Type: fabric.Float32, Operation: fabric.BitOr}
		},
		"half a piece": func() {
			op.Kind, op.Atomic, op.Remote = fabric.OpFetch, sum, fabric.Remote{}
			op.Remotes = []fabric.RemotePart{{Remote: part.Remote, Len: 4}, {Remote: part.Remote, Len: 12}}
		},
	}
	if m.limits.caps&fabric.FencedOperations == 0 {
		tries["fence"] = func() { op.Flags = fabric.Fence }
	}
	names := make([]string, 0, len(tries))
	for name := range tries {
		names = append(names, name)
	}
	slices.Sort(names)
	name := rapid.SampledFrom(names).Draw(t, "impossible")
	tries[name]()
	t.Logf("impossible: %s", name)
	posts := []fabric.Op{op}
	m.read(t, a.from, posts)
	require.Equal(t, fabric.Failed, posts[0].Result, "%s: %+v", name, op)
	require.Error(t, posts[0].Err)
}
