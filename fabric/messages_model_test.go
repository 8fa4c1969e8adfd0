package fabric_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/fabric"
)

// A model of how messages of one sender find receives: each takes the first receive that matches, and
// each receive the first message, in the order of their posts.

// sentMessage is one that is under way, or was received.
type sentMessage struct {
	op        fabric.Op
	text      []byte
	early     bool // it came before its receive
	truncated bool
}

func (m *sentMessage) tagged() bool {
	return m.op.Kind == fabric.OpTaggedSend || m.op.Kind == fabric.OpTaggedInject
}

// postedReceive is one that waits.
type postedReceive struct {
	op   fabric.Op
	room int
	// memory is what its buffers are of, each with guard bytes behind it.
	memory [][]byte
}

const guard = 16

func (w *postedReceive) matches(m *sentMessage) bool {
	if m.tagged() != (w.op.Kind == fabric.OpTaggedReceive) {
		return false
	}
	return !m.tagged() || (m.op.Tag^w.op.Tag)&^w.op.Ignore == 0
}

// modelLimits are what a provider can be asked for.
type modelLimits struct {
	directed   bool
	untagged   bool // there are untagged ones
	unexpected bool // a message may come before its receive
	masks      bool // Ignore may be something
	peeks      bool
	// immediates: they are there with messages that came before their receive, too.
	immediates bool
}

type messagesModel struct {
	limits     modelLimits
	from, to   *station
	waiting    []*postedReceive
	unexpected []*sentMessage
	sent       map[uint64]*sentMessage
	number     uint64
}

// turn has both look, and keeps what b gets.
func (m *messagesModel) turn(t *rapid.T) {
	var buf [8]fabric.Completion
	n, err := m.from.e.Turn(nil, buf[:], 0)
	require.NoError(t, err)
	for _, c := range buf[:n] {
		sent := m.sent[c.Context]
		require.NotNil(t, sent, "a completion of no send: %+v", c)
		delete(m.sent, c.Context)
		if c.Err != nil {
			require.True(t, sent.truncated && errors.Is(c.Err, fabric.ErrTruncated), "%v of %+v", c.Err, sent.op)
		}
	}
	if m.to.info.Provider() == "sockets" {
		n, err = m.to.e.TurnWait(nil, buf[:], 1)
	} else {
		n, err = m.to.e.Turn(nil, buf[:], 0)
	}
	require.NoError(t, err)
	m.to.got = append(m.to.got, buf[:n]...)
}

func (m *messagesModel) until(t *rapid.T, what string, done func() bool) {
	for deadline := time.Now().Add(20 * time.Second); !done(); m.turn(t) {
		require.True(t, time.Now().Before(deadline), "%s does not come", what)
	}
}

func (m *messagesModel) post(t *rapid.T, s *station, op fabric.Op) fabric.Op {
	posts := []fabric.Op{op}
	m.until(t, "room for a "+op.Kind.String(), func() bool {
		_, err := s.e.Turn(posts, nil, 0)
		require.NoError(t, err)
		return posts[0].Result != fabric.Refused
	})
	require.NoError(t, posts[0].Err)
	return posts[0]
}

func (m *messagesModel) completion(t *rapid.T, what string) fabric.Completion {
	m.until(t, "the end of "+what, func() bool { return len(m.to.got) > 0 })
	c := m.to.got[0]
	m.to.got = m.to.got[1:]
	return c
}

// pieces cuts a text into buffers, some of them empty.
func pieces(t *rapid.T, text []byte, most uint64) (buf []byte, vector [][]byte) {
	n := rapid.IntRange(0, int(min(most, 3))).Draw(t, "buffers")
	if n == 0 {
		return text, nil
	}
	for range n - 1 {
		i := rapid.IntRange(0, len(text)).Draw(t, "cut")
		vector = append(vector, text[:i:i])
		text = text[i:]
	}
	return nil, append(vector, text)
}

func (m *messagesModel) length(t *rapid.T) int {
	return rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(0, 300), rapid.IntRange(0, 20_000), rapid.IntRange(100_000, 140_000)).Draw(t, "length")
}

func (m *messagesModel) send(t *rapid.T) {
	m.number++
	op := fabric.Op{Peer: m.from.peer, Context: m.number}
	length := m.length(t)
	kinds := []fabric.OpKind{fabric.OpTaggedSend, fabric.OpTaggedInject, fabric.OpSend, fabric.OpInject}
	if !m.limits.untagged {
		kinds = kinds[:2]
	}
	op.Kind = rapid.SampledFrom(kinds).Draw(t, "kind")
	inject := op.Kind == fabric.OpInject || op.Kind == fabric.OpTaggedInject
	if inject {
		length = min(length, int(m.from.info.InjectSize()))
	}
	text := make([]byte, length)
	for i := range text {
		text[i] = byte(m.number + uint64(i)*7)
	}
	if inject {
		op.Buf = text
	} else {
		op.Buf, op.Vector = pieces(t, text, m.from.info.Send().Vectors)
	}
	if op.Kind == fabric.OpTaggedSend || op.Kind == fabric.OpTaggedInject {
		op.Tag = rapid.Uint64Range(0, 3).Draw(t, "tag")
	}
	if size := m.from.info.ImmediateSize(); size > 0 && rapid.Bool().Draw(t, "immediate") {
		op.Flags |= fabric.Immediate
		op.Immediate = m.number & (1<<(8*min(size, 4)) - 1)
	}
	sent := &sentMessage{op: op, text: text}
	var to *postedReceive
	for i, w := range m.waiting {
		if w.matches(sent) {
			to = w
			m.waiting = append(m.waiting[:i:i], m.waiting[i+1:]...)
			break
		}
	}
	if to == nil && !m.limits.unexpected {
		return
	}
	t.Logf("%v of tag %d, %d bytes in %d, flags %v, for %v", op.Kind, op.Tag, length, len(op.Vector), op.Flags, to != nil)
	sent.truncated = to != nil && length > to.room
	if !inject {
		m.sent[op.Context] = sent
	}
	m.post(t, m.from, op)
	if to == nil {
		sent.early = true
		m.unexpected = append(m.unexpected, sent)
		return
	}
	m.received(t, to, sent)
}

// received requires a receive to end with the message.
func (m *messagesModel) received(t *rapid.T, w *postedReceive, sent *sentMessage) {
	c := m.completion(t, "a receive")
	require.Equal(t, w.op.Context, c.Context, "another receive: %+v", c)
	require.Equal(t, w.op.Kind, c.Kind)
	got := 0
	for _, memory := range w.memory {
		buf := memory[:len(memory)-guard]
		require.Equal(t, bytes.Repeat([]byte{0xee}, guard), memory[len(buf):], "behind the buffer")
		if len(sent.text) <= w.room {
			n := min(len(buf), len(sent.text)-got)
			require.Equal(t, sent.text[got:got+n], buf[:n])
			got += n
		}
	}
	if len(sent.text) > w.room {
		require.ErrorIs(t, c.Err, fabric.ErrTruncated)
		return
	}
	require.NoError(t, c.Err)
	require.Equal(t, len(sent.text), c.Len)
	if sent.tagged() {
		require.Equal(t, sent.op.Tag, c.Tag)
	}
	if m.limits.immediates || !sent.early {
		require.Equal(t, sent.op.Flags&fabric.Immediate != 0, c.HasImmediate)
		require.Equal(t, sent.op.Immediate, c.Immediate)
	}
	if m.limits.directed {
		require.Equal(t, m.to.peer, c.Source)
	}
}

func (m *messagesModel) newReceive(t *rapid.T, kind fabric.OpKind, length int) *postedReceive {
	m.number++
	w := &postedReceive{op: fabric.Op{Kind: kind, Peer: fabric.AddressAny, Context: m.number}, room: length}
	if m.limits.directed {
		w.op.Peer = m.to.peer
	}
	_, parts := pieces(t, make([]byte, length), min(m.to.info.Receive().Vectors, 3))
	if parts == nil {
		parts = [][]byte{make([]byte, length)}
	}
	for _, p := range parts {
		memory := bytes.Repeat([]byte{0xee}, len(p)+guard)
		w.memory = append(w.memory, memory)
		w.op.Vector = append(w.op.Vector, memory[:len(p):len(p)])
	}
	if len(parts) == 1 && rapid.Bool().Draw(t, "as one buffer") {
		w.op.Buf, w.op.Vector = w.op.Vector[0], nil
	}
	return w
}

func (m *messagesModel) receive(t *rapid.T) {
	kind := fabric.OpTaggedReceive
	if m.limits.untagged && rapid.Bool().Draw(t, "untagged") {
		kind = fabric.OpReceive
	}
	w := m.newReceive(t, kind, m.length(t))
	if kind == fabric.OpTaggedReceive {
		w.op.Tag = rapid.Uint64Range(0, 3).Draw(t, "tag")
		if m.limits.masks {
			w.op.Ignore = rapid.SampledFrom([]uint64{0, 1, 2, ^uint64(0)}).Draw(t, "ignore")
		}
	}
	m.take(t, w)
}

// take posts a receive, which gets the first message that matches.
func (m *messagesModel) take(t *rapid.T, w *postedReceive) {
	var sent *sentMessage
	for i, u := range m.unexpected {
		if w.matches(u) {
			sent = u
			m.unexpected = append(m.unexpected[:i:i], m.unexpected[i+1:]...)
			break
		}
	}
	if sent != nil {
		sent.truncated = len(sent.text) > w.room
	}
	t.Logf("%v of tag %d but %x, %d bytes in %d, finds %v", w.op.Kind, w.op.Tag, w.op.Ignore, w.room, len(w.op.Vector), sent != nil)
	w.op = m.post(t, m.to, w.op)
	if sent == nil {
		m.waiting = append(m.waiting, w)
		return
	}
	m.received(t, w, sent)
}

// look peeks at a message, which is claimed and received, or discarded, or left.
func (m *messagesModel) look(t *rapid.T) {
	if !m.limits.peeks {
		return
	}
	m.number++
	peek := fabric.Op{
		Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Context: m.number, Flags: fabric.Peek,
		Tag: rapid.Uint64Range(0, 3).Draw(t, "tag"), Ignore: rapid.SampledFrom([]uint64{0, 1, ^uint64(0)}).Draw(t, "ignore"),
	}
	if m.limits.directed {
		peek.Peer = m.to.peer
	}
	more := rapid.SampledFrom([]fabric.OpFlags{0, fabric.Claim, fabric.Discard}).Draw(t, "more")
	peek.Flags |= more
	at := -1
	for i, u := range m.unexpected {
		if (&postedReceive{op: peek}).matches(u) {
			at = i
			break
		}
	}
	t.Logf("%v of tag %d but %x, is there: %v", peek.Flags, peek.Tag, peek.Ignore, at >= 0)
	var c fabric.Completion
	for deadline := time.Now().Add(20 * time.Second); ; {
		m.post(t, m.to, peek)
		c = m.completion(t, "a peek")
		require.Equal(t, peek.Context, c.Context)
		if at < 0 {
			require.ErrorIs(t, c.Err, fabric.ErrNoMessage)
			return
		}
		if !errors.Is(c.Err, fabric.ErrNoMessage) {
			break
		}
		require.True(t, time.Now().Before(deadline), "no message to peek at")
		m.turn(t)
	}
	require.NoError(t, c.Err)
	sent := m.unexpected[at]
	require.Equal(t, sent.op.Tag, c.Tag)
	if more != fabric.Discard {
		require.Equal(t, len(sent.text), c.Len)
	}
	if more == 0 {
		return
	}
	m.unexpected = append(m.unexpected[:at:at], m.unexpected[at+1:]...)
	if more == fabric.Discard {
		return
	}
	w := m.newReceive(t, fabric.OpTaggedReceive, m.length(t))
	w.op.Tag, w.op.Flags, w.op.Claimed = sent.op.Tag, fabric.Claim, c.Token
	sent.truncated = len(sent.text) > w.room
	t.Logf("claim, %d bytes in %d", w.room, len(w.op.Vector))
	w.op = m.post(t, m.to, w.op)
	m.received(t, w, sent)
}

func (m *messagesModel) cancel(t *rapid.T, i int) {
	w := m.waiting[i]
	m.waiting = append(m.waiting[:i:i], m.waiting[i+1:]...)
	t.Logf("cancel %v of tag %d", w.op.Kind, w.op.Tag)
	require.NoError(t, m.to.e.Cancel(w.op.Token))
	c := m.completion(t, "a receive that is cancelled")
	require.Equal(t, w.op.Context, c.Context)
	require.ErrorIs(t, c.Err, fabric.ErrCanceled)
}

// end receives what is left, and cancels what waits: then nothing is in flight.
func (m *messagesModel) end(t *rapid.T) {
	for len(m.waiting) > 0 {
		m.cancel(t, 0)
	}
	for len(m.unexpected) > 0 {
		u := m.unexpected[0]
		kind := fabric.OpReceive
		if u.tagged() {
			kind = fabric.OpTaggedReceive
		}
		w := m.newReceive(t, kind, len(u.text))
		w.op.Tag = u.op.Tag
		m.take(t, w)
	}
	m.until(t, "the end of sends", func() bool { return len(m.sent) == 0 })
	require.Empty(t, m.to.got)
	for _, s := range []*station{m.from, m.to} {
		require.Zero(t, s.q.InFlight())
		require.Zero(t, s.q.Strays())
	}
}

func TestMessagesModel(t *testing.T) {
	eachWithLayers(t, func(t *testing.T, provider string) {
		older := fabric.LibraryVersion().Major < 2
		limits := modelLimits{
			// One that nobody has received holds up all others there (FI_TCP_MAX_SAVED).
			unexpected: older || provider != "tcp",
			masks:      !older || provider != "shm",
			immediates: provider != "sockets",
			peeks:      (!older || provider != "shm") && (older || provider != "tcp"),
		}
		for name, directed := range map[string]bool{"of anybody": false, "of a peer": true} {
			t.Run(name, func(t *testing.T) {
				limits.directed = directed
				limits.untagged = !directed || older || provider != "tcp"
				caps := fabric.Messages | fabric.TaggedMessages
				if directed {
					caps |= fabric.DirectedReceive | fabric.SourceAddress
				}
				var a, b *station
				clean := false
				rapid.Check(t, func(rt *rapid.T) {
					if !clean {
						a, b = stations(t, provider, caps)
					}
					clean = false
					m := &messagesModel{limits: limits, from: a, to: b, sent: make(map[uint64]*sentMessage)}
					for range rapid.IntRange(1, 30).Draw(rt, "steps") {
						switch rapid.IntRange(0, 9).Draw(rt, "step") {
						case 0:
							if n := len(m.waiting); n > 0 {
								m.cancel(rt, rapid.IntRange(0, n-1).Draw(rt, "which"))
							}
						case 1:
							m.look(rt)
						case 2, 3, 4, 5:
							m.receive(rt)
						default:
							m.send(rt)
						}
					}
					m.end(rt)
					clean = true
				})
			})
		}
	})
}
