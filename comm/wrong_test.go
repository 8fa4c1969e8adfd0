package comm

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/internal/jobtest"
)

// deaf does not want to hear of the end of a message.
type deaf struct{}

func (deaf) Sent(efa.Progress, error) {}

// say sends what no rank would.
func say(t *testing.T, c *Comm, to int, head, payload []byte) {
	t.Helper()
	var err error
	c.engine.do(func(p efa.Progress) { _, err = p.Send(c.peer(to).conn, head, payload, deaf{}) })
	require.NoError(t, err)
}

func headOf(h header) []byte {
	var memory [openHeader]byte
	return h.put(&memory)
}

// What a rank should not have sent ends its connection, with an error that says so, and
// nothing else.
func TestWrongMessages(t *testing.T) {
	for name, wrong := range map[string]struct{ head, payload []byte }{
		"too short":                {head: []byte{1, 0, 0}},
		"no kind":                  {head: headOf(header{kind: kindEager})[1:]},
		"unknown kind":             {head: append([]byte{99}, headOf(header{kind: kindEager})[1:]...)},
		"reserved bytes":           {head: append([]byte{1, 1}, headOf(header{kind: kindEager})[2:]...)},
		"cut short":                {head: headOf(header{kind: kindReady})[:20]},
		"payload of what has none": {head: headOf(header{kind: kindReady}), payload: []byte("x")},
		"answer to nothing":        {head: headOf(header{kind: kindMatched, tag: 1<<32 | 1})},
		"clearance of nothing":     {head: headOf(header{kind: kindClear, tag: 77})},
		"data for nobody":          {head: headOf(header{kind: kindData, tag: 1<<32 | 5}), payload: []byte("x")},
		"far too long":             {head: headOf(header{kind: kindReady, length: 1 << 60})},
		"long data for nobody":     {payload: make([]byte, 100_000)},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bed) {
				if b.Name != "fake" && b.Name != "tcp" {
					return
				}
				worlds := b.openFor(t, 3, Config{}, efa.Config{})
				zero, one, two := worlds[0], worlds[1], worlds[2]
				buf := make([]byte, 10)
				q, err := zero.Irecv(buf, 2, 0)
				require.NoError(t, err)
				say(t, two, 0, wrong.head, wrong.payload)
				_, err = q.Wait(deadline(t))
				var lost *RankError
				require.ErrorAs(t, err, &lost)
				require.Equal(t, 2, lost.Rank)
				require.ErrorIs(t, err, ErrProtocol)
				require.ErrorIs(t, err, efa.ErrProtocol)
				isend(t, one, content(1, 1, 10), 0, 0)
				expect(t, zero, 1, 0, Status{Source: 1, Tag: 0, Length: 10}, 1)
			})
		})
	}
}

// An answer that a send has not asked for: a clearance for more than there is, or of
// what is on its way already, and a match for a message of which nothing was sent yet.
func TestWrongAnswers(t *testing.T) {
	for name, wrong := range map[string]struct {
		size   int
		answer header
	}{
		"clearance for more":        {100_000, header{kind: kindClear, length: 100_001}},
		"clearance for far more":    {100_000, header{kind: kindClear, length: 1 << 40}},
		"clearance of what is sent": {100, header{kind: kindClear, length: 50}},
		"match for nothing":         {100_000, header{kind: kindMatched}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bed) {
				if b.Name != "fake" {
					return
				}
				worlds := b.openFor(t, 2, Config{}, efa.Config{})
				q, err := worlds[0].Issend(make([]byte, wrong.size), 1, 0)
				require.NoError(t, err)
				arrive(t, worlds[0], worlds[1])
				worlds[0].engine.do(func(efa.Progress) { wrong.answer.tag = uint64(worlds[0].engine.sends.taken[0])<<32 | 1 })
				say(t, worlds[1], 0, headOf(wrong.answer), nil)
				_, err = q.Wait(deadline(t))
				require.ErrorIs(t, err, ErrProtocol)
			})
		})
	}
}

// Whoever comes before the ranks, and says that it is one, or something else, or nothing
// at all, is shown out, and the job begins.
func TestStrangerAtTheDoor(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		ctx := deadline(t)
		worlds, errs := make([]*Comm, 3), make([]error, 3)
		m := jobtest.NewMeeting(len(worlds))
		var strangers []*efa.Conn
		var all sync.WaitGroup
		for rank := range worlds {
			config := b.config(t, Config{}, efa.Config{})
			config.Rank, config.Size, config.Exchange = rank, len(worlds), m.Exchange(rank)
			if rank == 0 {
				// Nobody has its address before they do.
				config.Exchange = func(ctx context.Context, name string, mine []byte) ([][]byte, error) {
					strangers = knock(t, b, mine[:tokenSize], string(mine[cardSize:]))
					return m.Exchange(0)(ctx, name, mine)
				}
			}
			all.Go(func() { worlds[rank], errs[rank] = Open(ctx, config) })
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
		t.Cleanup(func() { closeAll(t, worlds) })
		require.Len(t, strangers, 5)
		for _, s := range strangers {
			_, err := s.ReadMessage(ctx, nil)
			require.Error(t, err)
			require.NoError(t, ctx.Err())
		}
		isend(t, worlds[1], content(1, 1, 10), 0, 0)
		expect(t, worlds[0], 1, 0, Status{Source: 1, Tag: 0, Length: 10}, 1)
		// No more are let in.
		_, err := net.Dial("tcp", worlds[0].engine.listener.Addr().String())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// knock dials a rank as those do that are none of the others.
func knock(t *testing.T, b *bed, token []byte, address string) (strangers []*efa.Conn) {
	r, err := efa.Open(b.config(t, Config{}, efa.Config{}).Engine)
	if !check(t, err == nil, "%v", err) {
		return nil
	}
	t.Cleanup(func() { check(t, r.Close() == nil, "close") })
	for _, card := range [][]byte{
		nil, // says nothing
		{},
		[]byte("0123456789abcdef\x01\x00\x00\x00"),
		append(bytes.Clone(token), 3, 0, 0, 0),
		append(bytes.Clone(token), 0, 0, 0, 0),
	} {
		conn, err := r.Dial(deadline(t), address)
		if !check(t, err == nil, "%v", err) {
			return nil
		}
		strangers = append(strangers, conn)
		if card != nil {
			err = conn.WriteMessage(deadline(t), card)
			check(t, err == nil, "%v", err)
		}
	}
	return strangers
}

// Rank 0 answers a Dup with more than there are ranks.
func TestWrongAnswerToSplit(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Name != "fake" {
			return
		}
		zero, one, _ := b.pair(t)
		sent := soon(t, func() error {
			_, err := zero.sendWithin(1, make([]byte, 10*memberSize)).runToEnd(deadline(t))
			return err
		})
		_, err := one.Dup(deadline(t))
		var long *TruncationError
		require.ErrorAs(t, err, &long)
		require.NoError(t, sent())
		// What rank 1 wanted.
		_, err = zero.receiveOn(zero.within(1), make([]byte, wishSize)).runToEnd(deadline(t))
		require.NoError(t, err)
		var open int
		one.engine.do(func(efa.Progress) { open = len(one.engine.unclosed) })
		require.Zero(t, open, "contexts of no communicator")
	})
}

func FuzzHeader(f *testing.F) {
	for k := kindEager; k <= kindOpen; k++ {
		f.Add(headOf(header{kind: k, context: 1, tag: 2, id: 3, length: 4}))
	}
	f.Add([]byte{})
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, m []byte) {
		h, payload, err := parseHeader(m)
		if err != nil {
			require.ErrorIs(t, err, ErrProtocol)
			return
		}
		require.Equal(t, m, append(headOf(h), payload...))
	})
}
