package fabric_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/fabric"
)

// posted is a receive as the model has it: for several messages, or for one.
type posted struct {
	token    fabric.Token
	memory   []byte
	several  bool
	taken    int
	canceled bool
}

// receiver is a station and what is known of its receives, in the order in which messages find
// them.
type receiver struct {
	*station
	from *station
	// turns says that buffers for several messages take turns; else the first one goes on until it is full.
	turns    bool
	line     []*posted
	contexts []*posted
	least    int
}

// post posts a receive with room for length bytes, and memory behind that nobody may touch.
func (r *receiver) post(t *testing.T, several bool, length int) {
	const behind = 300
	p := &posted{memory: make([]byte, length+behind), several: several}
	op := fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: p.memory[:length:length], Context: uint64(len(r.contexts))}
	if several {
		op.Flags = fabric.MultiReceive
	}
	t.Log("post", several, length)
	p.token = r.must(t, r.from, op).Token
	p.memory = p.memory[:length]
	r.line, r.contexts = append(r.line, p), append(r.contexts, p)
}

func (r *receiver) room(p *posted) int { return len(p.memory) - p.taken }

// onesWait says whether a receive for one message waits.
func (r *receiver) onesWait() bool {
	for _, p := range r.line {
		if !p.several {
			return true
		}
	}
	return false
}

// take has a message of length bytes sent, and requires what the model says of its completion.
func (r *receiver) take(t *testing.T, length int) {
	if len(r.line) == 0 {
		return
	}
	t.Log("take", length)
	text := bytes.Repeat([]byte{byte(1 + length%200)}, length)
	r.from.must(t, r.station, fabric.Op{Kind: fabric.OpSend, Peer: r.from.peer, Buf: text})
	c := r.await(t, r.from)
	p := r.line[0]
	require.Same(t, p, r.contexts[c.Context])
	r.line = r.line[1:]
	require.NoError(t, r.from.await(t, r.station).Err)
	defer r.intact(t, p)
	if length > r.room(p) {
		require.ErrorIs(t, c.Err, fabric.ErrTruncated)
		r.released(t, p, c)
		return
	}
	require.NoError(t, c.Err)
	require.Equal(t, length, c.Len)
	if !p.several {
		require.Equal(t, text, p.memory[:length])
		require.False(t, c.Released)
		return
	}
	if length > 0 {
		require.Equal(t, p.taken, c.Offset)
	}
	require.Equal(t, text, p.memory[p.taken:p.taken+length])
	p.taken += length
	switch full := r.room(p) == 0 || r.room(p) < r.least; {
	case full || r.turns && r.onesWait():
		r.released(t, p, c)
	case r.turns:
		require.False(t, c.Released)
		r.line = append(r.line, p)
	default:
		require.False(t, c.Released)
		r.line = append([]*posted{p}, r.line...)
	}
}

// released requires a buffer to be given back, by this completion or by one without a message.
func (r *receiver) released(t *testing.T, p *posted, c fabric.Completion) {
	for p.several && !c.Released {
		c = r.await(t, r.from)
		require.Same(t, p, r.contexts[c.Context])
		require.NoError(t, c.Err)
		require.Zero(t, c.Len)
	}
}

// intact requires memory behind the buffer to be as it was.
func (r *receiver) intact(t *testing.T, p *posted) {
	behind := p.memory[len(p.memory):cap(p.memory)]
	require.Equal(t, make([]byte, len(behind)), behind)
}

// cancel ends all receives, each of which says so once.
func (r *receiver) cancel(t *testing.T) {
	for _, p := range r.line {
		require.NoError(t, r.e.Cancel(p.token))
	}
	for range r.line {
		c := r.await(t, r.from)
		p := r.contexts[c.Context]
		require.ErrorIs(t, c.Err, fabric.ErrCanceled)
		require.Equal(t, p.several, c.Released)
		require.False(t, p.canceled)
		p.canceled = true
	}
	r.line = nil
	require.Zero(t, r.q.InFlight())
	require.Zero(t, r.q.Strays())
}

// Buffers for several messages among receives for one, and messages that fit and do not.
func TestMultiReceiveModel(t *testing.T) {
	eachWithLayers(t, func(t *testing.T, provider string) {
		var a, b *station
		clean := false
		turns := provider != "tcp" || fabric.LibraryVersion().Major < 2
		rapid.Check(t, func(rt *rapid.T) {
			if !clean {
				a, b = stations(t, provider, fabric.Messages|fabric.MultiReceiveBuffers)
			}
			clean = false
			r := &receiver{station: b, from: a, turns: turns, least: rapid.SampledFrom([]int{1, 8, 64, 100}).Draw(rt, "least")}
			require.NoError(t, b.e.SetSizeOption(fabric.OptionMinMultiReceive, uint64(r.least)))
			length := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 20_000))
			for range rapid.IntRange(1, 30).Draw(rt, "steps") {
				switch rapid.IntRange(0, 9).Draw(rt, "step") {
				case 0, 1:
					r.post(t, true, 1+length.Draw(rt, "buffer for several"))
				case 2:
					r.post(t, false, length.Draw(rt, "buffer"))
				default:
					r.take(t, length.Draw(rt, "message"))
				}
			}
			r.cancel(t)
			clean = true
		})
	})
}

// Messages that were all sent before any is received come in order, whatever buffers they find.
func TestMultiReceiveKeepsOrder(t *testing.T) {
	eachWithLayers(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.MultiReceiveBuffers)
		const buffers, room, messages, longest = 3, 1000, 400, 250
		require.NoError(t, b.e.SetSizeOption(fabric.OptionMinMultiReceive, longest))
		x := trayOf(t, room, room, room)
		var sends []fabric.Op
		for i := range messages {
			p := parcel{byte(i), 1 + i*37%longest}
			sends = append(sends, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: p.text()})
		}
		for i := range buffers {
			b.must(t, a, x.receive(i, fabric.MultiReceive))
		}
		received, used := 0, 0
		read := func() {
			for len(b.got) > 0 {
				c := b.got[0]
				b.got = b.got[1:]
				require.NoError(t, c.Err)
				if c.Len > 0 {
					x.is(t, c, parcel{byte(received), 1 + received*37%longest})
					received++
				}
				if c.Released {
					used++
					b.must(t, a, x.receive(int(c.Context), fabric.MultiReceive))
				}
			}
		}
		for left := sends; len(left) > 0; left = left[min(len(left), 40):] {
			a.postAll(t, b, left[:min(len(left), 40)])
			read()
		}
		for received < messages {
			c := b.await(t, a)
			b.got = append([]fabric.Completion{c}, b.got...)
			read()
		}
		require.Less(t, used, messages/3, "buffers that took few messages")
		require.Zero(t, b.q.Strays())
	})
}
