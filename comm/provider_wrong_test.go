package comm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/tagged"
)

// sayMatched sends what no rank would, to be matched.
func sayMatched(t *testing.T, c *Comm, to int, e tagged.Envelope, m []byte) {
	t.Helper()
	var err error
	c.engine.do(func(p efa.Progress) { err = p.SendMatched(c.peer(to).conn, tagged.MatchedTag(e), m, nil) })
	require.NoError(t, err)
}

// A message that says to be of another rank than its sender's address belongs to is
// dropped, whichever receive it got, and that gets the next one.
func TestStrangerIsNotMatched(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		worlds := b.open(t, 3, Config{}, efa.Config{})
		zero, one, two := worlds[0], worlds[1], worlds[2]
		before := zero.Stats().Dropped
		buf := make([]byte, 8)
		q := irecv(t, zero, buf, 1, 7)
		for _, source := range []uint32{1, 0, 77} {
			// The first takes the receive, the others wait with the provider.
			sayMatched(t, two, 0, tagged.Envelope{Source: source, Tag: 7}, headOf(header{kind: kindEager, tag: 7}))
		}
		arrive(t, two, zero)
		_, done, err := q.Test()
		require.NoError(t, err)
		require.False(t, done)
		isend(t, one, content(1, 1, 8), 0, 7)
		require.Equal(t, Status{Source: 1, Tag: 7, Length: 8}, finish(t, q))
		require.Equal(t, content(1, 1, 8), buf)
		_, found, err := zero.Iprobe(AnySource, 7)
		require.NoError(t, err)
		require.False(t, found)
		require.Eventually(t, func() bool { return zero.Stats().Dropped-before == 3 }, patience, time.Millisecond)
	})
}

// What a rank should not have sent to be matched ends its connection, whether a receive
// or the catch-all got it, and nothing else.
func TestWrongMatchedMessages(t *testing.T) {
	from := tagged.Envelope{Source: 2, Tag: 7}
	for name, wrong := range map[string]struct {
		e tagged.Envelope
		m []byte
	}{
		"too short":                   {from, []byte{1, 0, 0}},
		"unknown kind":                {from, append([]byte{99}, headOf(header{kind: kindEager, tag: 7})[1:]...)},
		"kind that is not matched":    {from, headOf(header{kind: kindClear, tag: 7})},
		"another tag in the header":   {from, headOf(header{kind: kindEager, tag: 8})},
		"number beyond its credit":    {from, headOf(header{kind: kindEager, tag: 7, number: mostOutstanding})},
		"far too long":                {from, headOf(header{kind: kindReady, tag: 7, length: 1 << 60})},
		"to be received in full only": {from, append(headOf(header{kind: kindOpen, tag: 7}), 1)},
	} {
		t.Run(name, func(t *testing.T) {
			byProvider(t, func(t *testing.T, b *bed) {
				if b.Name != "fake" {
					return
				}
				for _, handedDown := range []bool{true, false} {
					worlds := b.openFor(t, 3, Config{}, efa.Config{})
					zero, one, two := worlds[0], worlds[1], worlds[2]
					tag := 5
					if handedDown {
						tag = 7
					}
					q := irecv(t, zero, make([]byte, 8), 2, tag)
					sayMatched(t, two, 0, wrong.e, wrong.m)
					require.Eventually(t, func() bool {
						// Which brings up what no receive in the provider takes.
						_, _ = zero.Improbe(1, 9)
						return zero.engine.failureOf(2) != nil
					}, patience, time.Millisecond)
					_, err := q.Wait(deadline(t))
					var lost *RankError
					require.ErrorAs(t, err, &lost)
					require.Equal(t, 2, lost.Rank)
					require.ErrorIs(t, err, ErrProtocol)
					isend(t, one, content(1, 1, 8), 0, 7)
					expect(t, zero, 1, 7, Status{Source: 1, Tag: 7, Length: 8}, 1)
				}
			})
		})
	}
}

func (e *engine) failureOf(rank int) (failure error) {
	e.do(func(efa.Progress) { failure = e.peers[rank].failure })
	return failure
}

// Words about credit that no rank would say end its connection.
func TestWrongCredit(t *testing.T) {
	for name, wrong := range map[string]header{
		"credit for what was not sent": {kind: kindCredit, tag: 2, id: 10},
		"more bytes than were sent":    {kind: kindCredit, tag: 0, id: 1 << 20},
		"brings what it has no credit for": {
			kind: kindBring, tag: mostOutstanding + 1,
		},
		"leaves with more than it has credit for": {kind: kindLeave, tag: 1 << 40},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bed) {
				if b.Name != "fake" {
					return
				}
				worlds := b.openFor(t, 2, Config{}, efa.Config{})
				q := irecv(t, worlds[0], make([]byte, 8), 1, 0)
				say(t, worlds[1], 0, headOf(wrong), nil)
				_, err := q.Wait(deadline(t))
				var lost *RankError
				require.ErrorAs(t, err, &lost)
				require.ErrorIs(t, err, ErrProtocol)
			})
		})
	}
}
