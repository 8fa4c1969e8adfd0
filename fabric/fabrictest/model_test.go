package fabrictest

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/fabric"
)

// The model test holds all completions, so that it sees in which order the
// operations of a device end, and judges each end by what a naive matcher
// allows: a receive takes the earliest message of its sender that it matches,
// and a message goes to the earliest receive that it matches.

type modelMessage struct {
	id        uint64
	from, to  int
	tag       uint64
	length    int
	inject    bool
	cancelled bool
	sent      bool // its send has completed
	matched   bool
}

type modelReceive struct {
	on               int
	peer             fabric.Address
	tag, ignore      uint64
	buf              []byte
	token            fabric.Token
	cancel, finished bool
}

func (r *modelReceive) matches(m *modelMessage) bool {
	return m.tag&^r.ignore == r.tag&^r.ignore &&
		(r.peer == fabric.AddressAny || int(r.peer) == m.from)
}

// model is the naive matcher next to the devices that it judges. Tags carry
// the message's id where no receive looks, and so does each message; contexts
// are ids too.
type model struct {
	network  *Network
	devices  []*Device
	pending  [][]fabric.Op // by device: drawn, not posted yet
	nextID   uint64
	messages []*modelMessage // posted, in order
	receives []*modelReceive // posted, in order
	queued   map[uint64]*modelMessage
	awaiting map[uint64]*modelReceive
	tokens   map[uint64]fabric.Token // of posted sends, by id
	seen     []int                   // by device: completions of Held that were judged
	inOrder  [][]fabric.Completion   // by device: released, to be returned in this order
	returned map[uint64]bool
}

const (
	selectable = 0x7 // the bits of a tag that receives select by
	idShift    = 8
	minLength  = 8 // room for the id
)

func newModel(t *rapid.T) *model {
	faults := Faults{
		Seed:             rapid.Uint64Min(1).Draw(t, "seed"),
		Refuse:           rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "refuse"),
		RefuseEveryOther: rapid.Bool().Draw(t, "every other"),
		Delay:            rapid.IntRange(0, 4).Draw(t, "delay"),
		CancelSends:      rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "cancel sends"),
	}
	config := DeviceConfig{
		MaxOperations:   rapid.IntRange(4, 32).Draw(t, "operations"),
		UnexpectedLimit: rapid.SampledFrom([]int{0, 3}).Draw(t, "unexpected"),
	}
	count := rapid.IntRange(2, 3).Draw(t, "devices")
	m := &model{
		network: NewNetwork(faults), devices: make([]*Device, count), pending: make([][]fabric.Op, count),
		queued: map[uint64]*modelMessage{}, awaiting: map[uint64]*modelReceive{}, tokens: map[uint64]fabric.Token{},
		seen: make([]int, count), inOrder: make([][]fabric.Completion, count), returned: map[uint64]bool{},
	}
	var err error
	for i := range m.devices {
		m.devices[i], err = m.network.Open(config)
		require.NoError(t, err)
		m.network.HoldCompletions(m.devices[i])
	}
	for _, d := range m.devices {
		for _, other := range m.devices {
			_, err = d.Insert(other.LocalAddress())
			require.NoError(t, err)
		}
	}
	return m
}

func (m *model) draw(t *rapid.T) int { return rapid.IntRange(0, len(m.devices)-1).Draw(t, "device") }

func (m *model) send(t *rapid.T) {
	from, to := m.draw(t), m.draw(t)
	id := m.nextID
	m.nextID++
	message := &modelMessage{
		id: id, from: from, to: to, tag: id<<idShift | rapid.Uint64Range(0, selectable).Draw(t, "tag"),
		length: rapid.IntRange(minLength, 3*minLength).Draw(t, "length"), inject: rapid.Bool().Draw(t, "inject"),
	}
	op := fabric.Op{Kind: fabric.OpTaggedSend, Peer: fabric.Address(to), Tag: message.tag, Buf: content(message), Context: id}
	if message.inject {
		op.Kind = fabric.OpTaggedInject
	}
	m.queued[id] = message
	m.pending[from] = append(m.pending[from], op)
}

func content(message *modelMessage) []byte {
	b := binary.LittleEndian.AppendUint64(nil, message.id)
	for len(b) < message.length {
		b = append(b, byte(int(message.id)+len(b)))
	}
	return b
}

func (m *model) receive(t *rapid.T) {
	on := m.draw(t)
	id := m.nextID
	m.nextID++
	r := &modelReceive{
		on: on, peer: fabric.Address(m.draw(t)), tag: rapid.Uint64Range(0, selectable).Draw(t, "tag"),
		ignore: ^uint64(selectable) | rapid.SampledFrom([]uint64{0, 1, 2, selectable}).Draw(t, "ignore"),
		buf:    make([]byte, rapid.IntRange(minLength, 3*minLength).Draw(t, "room")),
	}
	if rapid.Bool().Draw(t, "any source") {
		r.peer = fabric.AddressAny
	}
	m.awaiting[id] = r
	m.pending[on] = append(m.pending[on], fabric.Op{
		Kind: fabric.OpTaggedReceive, Peer: r.peer, Tag: r.tag, Ignore: r.ignore, Buf: r.buf, Context: id,
	})
}

func (m *model) turn(t *rapid.T) { m.turnOf(t, m.draw(t)) }

// turnOf takes a Turn, and judges what it posted, what ended and what came.
func (m *model) turnOf(t *rapid.T, self int) {
	ops := m.pending[self]
	completions := make([]fabric.Completion, rapid.IntRange(0, 4).Draw(t, "room"))
	reaped, err := m.devices[self].Turn(ops, completions, 0)
	require.NoError(t, err)

	blocked := map[lane]bool{}
	m.pending[self] = nil
	for _, op := range ops {
		l := lane{op.Peer, op.Kind == fabric.OpTaggedReceive}
		require.NotEqual(t, fabric.Failed, op.Result, "%v", op.Err)
		if op.Result == fabric.Refused {
			blocked[l] = true
			m.pending[self] = append(m.pending[self], op)
			continue
		}
		require.False(t, blocked[l], "posted after a refused one")
		switch op.Kind {
		case fabric.OpTaggedReceive:
			m.awaiting[op.Context].token = op.Token
			m.receives = append(m.receives, m.awaiting[op.Context])
		case fabric.OpTaggedSend:
			m.tokens[op.Context] = op.Token
			m.messages = append(m.messages, m.queued[op.Context])
		case fabric.OpTaggedInject:
			m.messages = append(m.messages, m.queued[op.Context])
			clear(op.Buf) // it is free
		}
	}
	for i := range m.devices {
		m.judge(t, i)
	}
	require.LessOrEqual(t, reaped, len(m.inOrder[self]))
	require.Equal(t, min(len(completions), len(m.inOrder[self])), reaped)
	for _, c := range completions[:reaped] {
		require.Equal(t, m.inOrder[self][0], c)
		m.inOrder[self] = m.inOrder[self][1:]
		require.False(t, m.returned[c.Context], "completed twice")
		m.returned[c.Context] = true
	}
}

// judge looks at the operations of a device that ended since the last time.
func (m *model) judge(t *rapid.T, self int) {
	held := m.network.Held(m.devices[self])
	for _, c := range held[m.seen[self]:] {
		if c.Kind == fabric.OpTaggedReceive {
			m.judgeReceive(t, self, c)
		} else {
			m.judgeSend(t, self, c)
		}
	}
	m.seen[self] = len(held)
}

func (m *model) judgeSend(t *rapid.T, self int, c fabric.Completion) {
	message := m.queued[c.Context]
	require.Equal(t, self, message.from)
	require.False(t, message.inject)
	require.False(t, message.sent, "ended twice")
	message.sent = true
	if c.Err != nil {
		require.ErrorIs(t, c.Err, fabric.ErrCanceled)
		require.True(t, message.cancelled)
		require.False(t, message.matched)
		m.messages = slices.DeleteFunc(m.messages, func(other *modelMessage) bool { return other == message })
	}
}

func (m *model) judgeReceive(t *rapid.T, self int, c fabric.Completion) {
	r := m.awaiting[c.Context]
	require.Equal(t, self, r.on)
	require.False(t, r.finished, "ended twice")
	r.finished = true
	defer func() {
		m.receives = slices.DeleteFunc(m.receives, func(other *modelReceive) bool { return other == r })
	}()
	if r.cancel && c.Err != nil && c.Len == 0 {
		require.ErrorIs(t, c.Err, fabric.ErrCanceled)
		return
	}
	id := binary.LittleEndian.Uint64(r.buf)
	message := m.queued[id]
	require.NotNil(t, message)
	require.False(t, message.matched, "taken twice")
	message.matched = true
	require.Equal(t, self, message.to)
	require.True(t, r.matches(message))

	want := content(message)
	if len(r.buf) < message.length {
		require.ErrorIs(t, c.Err, fabric.ErrTruncated)
		want = want[:len(r.buf)]
	} else {
		require.NoError(t, c.Err)
		require.Equal(t, message.tag, c.Tag)
		require.EqualValues(t, message.from, c.Source)
	}
	require.Equal(t, len(want), c.Len)
	require.Equal(t, want, r.buf[:c.Len])
	require.Equal(t, make([]byte, len(r.buf)-c.Len), r.buf[c.Len:], "beyond the message")

	for _, other := range m.messages {
		if other == message {
			break
		}
		require.False(t, other.from == message.from && other.to == self && !other.matched && r.matches(other),
			"message %d was overtaken by %d", other.id, message.id)
	}
	for _, other := range m.receives {
		if other == r {
			break
		}
		require.False(t, other.on == self && other.matches(message), "an earlier receive was passed over")
	}
}

func (m *model) cancel(t *rapid.T) {
	if len(m.awaiting) == 0 && len(m.tokens) == 0 {
		t.Skip("nothing to cancel")
	}
	id := rapid.Uint64Range(0, m.nextID-1).Draw(t, "which")
	if r := m.awaiting[id]; r != nil && r.token != 0 {
		r.cancel = r.cancel || !r.finished
		require.NoError(t, m.devices[r.on].Cancel(r.token))
	} else if token, ok := m.tokens[id]; ok {
		message := m.queued[id]
		message.cancelled = message.cancelled || !message.sent
		require.NoError(t, m.devices[message.from].Cancel(token))
	}
	for i := range m.devices {
		m.judge(t, i)
	}
}

// release lets some of the completions go, in random order.
func (m *model) release(t *rapid.T) { m.releaseOf(t, m.draw(t), true) }

func (m *model) releaseOf(t *rapid.T, self int, some bool) {
	held := m.network.Held(m.devices[self])
	order := make([]int, len(held))
	for i := range order {
		order[i] = i
	}
	order = rapid.Permutation(order).Draw(t, "order")
	if some {
		order = order[:rapid.IntRange(0, len(order)).Draw(t, "count")]
	}
	for _, i := range order {
		m.inOrder[self] = append(m.inOrder[self], held[i])
	}
	m.network.ReleaseCompletions(m.devices[self], order)
	m.seen[self] -= len(order)
}

// finish brings everything on its way to its end.
func (m *model) finish(t *rapid.T) {
	idle := 0
	for idle < 10 {
		idle++
		for i := range m.devices {
			before := len(m.pending[i])
			m.releaseOf(t, i, false)
			m.turnOf(t, i)
			if len(m.inOrder[i]) > 0 || len(m.pending[i]) < before || len(m.network.Held(m.devices[i])) > 0 {
				idle = 0
			}
		}
	}
	for _, message := range m.messages {
		require.Equal(t, message.sent, m.returned[message.id])
		if message.matched {
			require.True(t, message.sent || message.inject)
			continue
		}
		if m.devices[message.to].limit > 0 {
			continue // it may be stuck behind one that has no room
		}
		require.True(t, message.sent || message.inject, "message %d did not arrive", message.id)
		for _, r := range m.receives {
			require.False(t, r.on == message.to && r.matches(message), "a message and its receive did not meet")
		}
	}
	for id, r := range m.awaiting {
		require.Equal(t, r.finished, m.returned[id])
		require.False(t, r.cancel && !r.finished, "a cancelled receive did not end")
	}
	inFlight := len(m.receives)
	for _, message := range m.messages {
		if !message.inject && !message.sent {
			inFlight++
		}
	}
	require.Equal(t, inFlight, m.network.Stats().InFlight)
	for _, d := range m.devices {
		require.NoError(t, d.Close())
	}
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"send":         m.send,
			"send another": m.send,
			"receive":      m.receive,
			"receive more": m.receive,
			"turn":         m.turn,
			"cancel":       m.cancel,
			"release":      m.release,
		})
		m.finish(t)
	})
}
