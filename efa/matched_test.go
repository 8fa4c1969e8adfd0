package efa

import (
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/tagged"
)

// ends notes how the receives of a reactor have ended.
type ends struct {
	r        *Reactor
	peer     *MatchPeer
	messages []string
	tags     []uint64
	errs     []error
	foreign  int
}

// Matched implements MatchHandler.
func (e *ends) Matched(p Progress, m Matched) {
	switch {
	case m.Err != nil:
		e.errs = append(e.errs, m.Err)
	case !m.From(e.peer):
		p.Stranger(m)
		e.foreign++
	default:
		e.messages, e.tags = append(e.messages, string(m.Message)), append(e.tags, m.Tag)
	}
}

// await waits until so many receives have ended.
func (e *ends) await(t *testing.T, count int) {
	t.Helper()
	require.Eventually(t, func() bool {
		e.r.Poll()
		done := 0
		e.r.do(func() { done = len(e.messages) + len(e.errs) + e.foreign })
		return done >= count
	}, patience, time.Millisecond)
}

// match opens two reactors with a connection, of which the second one's device matches.
func (b *bed) match(t *testing.T, config Config) (dialed *Conn, e *ends) {
	t.Helper()
	dialed, accepted := b.connect(t, config)
	r := accepted.reactor
	testenv.Need(t, "matching by "+b.Name, r.CanMatch())
	e = &ends{r: r}
	r.do(func() { e.peer = Progress{r}.MatchPeer(accepted) })
	require.NotNil(t, e.peer)
	return dialed, e
}

func (e *ends) post(t *testing.T, tag, ignore uint64) (m MatchReceive) {
	t.Helper()
	var err error
	e.r.do(func() { m, err = Progress{e.r}.Match(tag, ignore, e) })
	require.NoError(t, err)
	return m
}

func sendMatched(c *Conn, tag uint64, head, payload string) (err error) {
	c.reactor.do(func() { err = Progress{c.reactor}.SendMatched(c, tag, []byte(head), []byte(payload)) })
	return err
}

// Matched messages go to the earliest receive that takes them, in order, in the middle of
// messages of the connection, and neither takes the other.
func TestMatchedMessages(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, e := b.match(t, Config{})
		e.post(t, tagged.AnyMatched, tagged.AnyMatchedIgnore)
		e.post(t, 5, 0)
		for i, tag := range []uint64{5, 6, 5} {
			require.NoError(t, sendMatched(dialed, tag, "head ", string(rune('a'+i))))
			require.NoError(t, dialed.TrySend([]byte("ordinary")))
		}
		e.await(t, 2)
		e.post(t, tagged.AnyMatched, tagged.AnyMatchedIgnore)
		e.await(t, 3)
		slices.Sort(e.messages)
		require.Equal(t, []string{"head a", "head b", "head c"}, e.messages)
		require.Empty(t, e.errs)
		// The longest, and one more.
		long := string(make([]byte, dialed.EagerLimit()))
		var size *MessageSizeError
		require.ErrorAs(t, sendMatched(dialed, 7, "h", long), &size)
		require.NoError(t, sendMatched(dialed, 7, "", long))
		e.post(t, 7, 0)
		e.await(t, 4)
		require.ErrorIs(t, sendMatched(dialed, tagged.LengthTag(1, 2), "head", ""), fabric.ErrInvalid)
		sent, received := dialed.reactor.Stats(), e.r.Stats()
		require.EqualValues(t, []uint64{4, 4}, []uint64{sent.MatchedSent, received.MatchedReceived})
		e.r.do(func() { Progress{e.r}.Forget(e.peer) })
	})
}

// A receive that is taken back ends once, as canceled, whether the device has it yet or
// not, and what comes then is for the next.
func TestUnmatch(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, e := b.match(t, Config{})
		var heard int
		var failed []error
		answers := true
		e.r.do(func() {
			p := Progress{e.r}
			for range 3 {
				m, err := p.Match(5, 0, e)
				failed = append(failed, err)
				answers = answers && p.Unmatch(m) && p.Unmatch(m)
			}
			heard = len(e.errs)
		})
		require.NoError(t, errors.Join(failed...))
		require.True(t, answers)
		require.Zero(t, heard, "nobody hears of it in the call")
		e.await(t, 3)
		posted := e.post(t, 5, 0)
		require.Eventually(t, func() (there bool) {
			e.r.Poll()
			e.r.do(func() { there = posted.op.posted })
			return there
		}, patience, time.Millisecond)
		e.r.do(func() { Progress{e.r}.Unmatch(posted) })
		e.await(t, 4)
		e.post(t, 5, 0)
		require.NoError(t, sendMatched(dialed, 5, "head", ""))
		e.await(t, 5)
		require.Equal(t, []string{"head"}, e.messages)
		require.Len(t, e.errs, 4)
		for _, err := range e.errs {
			require.ErrorIs(t, err, fabric.ErrCanceled)
		}
		e.r.do(func() { Progress{e.r}.Forget(e.peer) })
	})
}

// When the reactor is closed, each receive ends once.
func TestMatchedReceivesEndWithTheReactor(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		_, e := b.match(t, Config{})
		for range 5 {
			e.post(t, 5, 0)
		}
		orphan := e.post(t, 6, 0)
		other := &ends{r: e.r}
		e.r.do(func() { orphan.Hand(other) })
		require.NoError(t, e.r.Close())
		require.Len(t, e.errs, 5)
		require.Len(t, other.errs, 1)
		for _, err := range append(e.errs, other.errs...) {
			require.ErrorIs(t, err, net.ErrClosed)
		}
		var err error
		e.r.do(func() { _, err = Progress{e.r}.Match(5, 0, e) })
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// What matched messages are under way when their connection ends go with it, and what
// has come is known as the peer's still.
func TestMatchedMessagesAndTheEnd(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, e := b.match(t, Config{})
		require.NoError(t, sendMatched(dialed, 5, "before", ""))
		require.NoError(t, sendMatched(dialed, 6, "last", ""))
		e.post(t, 6, 0)
		// Behind it, so that the first is there.
		e.await(t, 1)
		var accepted *Conn
		e.r.do(func() {
			for c := range e.r.connections() {
				accepted = c
			}
		})
		require.NoError(t, accepted.CloseNow())
		require.Eventually(t, func() bool { return errors.Is(sendMatched(dialed, 5, "after", ""), ErrPeerLost) }, patience, time.Millisecond)
		e.post(t, 5, 0)
		e.await(t, 2)
		require.Equal(t, []string{"last", "before"}, e.messages)
		require.Zero(t, e.foreign)
		e.r.do(func() { Progress{e.r}.Forget(e.peer) })
	})
}

// A device that would match wrongly says so.
func TestCanMatch(t *testing.T) {
	b := newBed(t, setting{Name: "fake", Device: fabrictest.DeviceConfig{MasksMissWaiting: true, MaxOperations: 8}})
	r := b.open(t, Config{})
	var cannot *DeviceError
	require.ErrorAs(t, r.CanMatch(), &cannot)
	require.ErrorIs(t, r.CanMatch(), fabric.ErrNotSupported)
	require.Equal(t, 1, r.MatchRoom())
	r = newBed(t, setting{Name: "fake"}).open(t, Config{})
	require.NoError(t, r.CanMatch())
	require.Equal(t, (1024-lengthBuffers-controlBuffers-256)/2, r.MatchRoom())
}
