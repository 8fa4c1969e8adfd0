package comm

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weft-go/weft/efa"
)

// originCase is a test that another project has, under the name that it has there.
type originCase struct {
	name string
	test func(t *testing.T, b *bed)
}

// runCases runs cases in every setting. They share what they lend.
func runCases(t *testing.T, cases []originCase) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	shared := &jobs{t: t, worlds: map[string][]*Comm{}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, b *bed) {
				b.jobs = shared
				c.test(t, b)
			})
		})
	}
}

// jobs are open for several cases, one after the other, since to open one takes longer
// than most cases do. They are closed at the end of t.
type jobs struct {
	t      *testing.T
	worlds map[string][]*Comm
}

// lend gives a case a job of two ranks, in which it is to leave nothing behind.
func (b *bed) lend(t *testing.T, config Config, engine efa.Config) (zero, one *Comm) {
	t.Helper()
	key := fmt.Sprint(b.Name, b.matching, config.NoRemoteReads, config.ReadPiece, config.MaxUnexpected, engine.EagerLimit, engine.WindowMessages)
	worlds, ok := b.jobs.worlds[key]
	if !ok {
		worlds = b.open(b.jobs.t, 2, config, engine)
		b.jobs.worlds[key] = worlds
	}
	t.Cleanup(func() {
		if t.Failed() {
			// What it has left there is not the fault of the next.
			delete(b.jobs.worlds, key)
			return
		}
		for _, c := range worlds {
			require.Equal(t, [4]int{}, left(c), "posted, unexpected, sent, received")
		}
	})
	return worlds[0], worlds[1]
}

// left is how much of what was begun here has not ended.
func left(c *Comm) (counts [4]int) {
	c.engine.do(func(efa.Progress) {
		e := c.engine
		counts = [4]int{e.waiting(), e.matcher.Unexpected(), len(e.sends.live()), len(e.receives.live())}
	})
	return counts
}

// settled waits until nothing is left here that has its message: where the provider
// matches, requests may end in another order than they had theirs.
func settled(t *testing.T, c *Comm) {
	t.Helper()
	require.Eventually(t, func() bool { return left(c) == [4]int{} }, patience, time.Millisecond)
}

// two lends a job of two ranks with the defaults.
func (b *bed) two(t *testing.T) (zero, one *Comm, limit int) {
	t.Helper()
	zero, one = b.lend(t, Config{}, efa.Config{})
	limit, err := zero.EagerLimit(1)
	require.NoError(t, err)
	return zero, one, limit
}

// withEager lends a job of two ranks with an eager limit of so much, header included.
func (b *bed) withEager(t *testing.T, eager int) (zero, one *Comm) {
	t.Helper()
	// A window of the default's messages of 64 KiB would take longer to make than to use.
	return b.lend(t, Config{}, efa.Config{EagerLimit: eager, WindowMessages: 32})
}

// fast says whether a setting is one for tests whose size matters.
func (b *bed) fast() bool { return b.Name == "fake" || b.Name == "shm" }

// irecv begins a receive.
func irecv(t *testing.T, c *Comm, buf []byte, source, tag int) Request {
	t.Helper()
	q, err := c.Irecv(buf, source, tag)
	require.NoError(t, err)
	return q
}

// finish waits for a request that ends well.
func finish(t *testing.T, q Request) Status {
	t.Helper()
	status, err := q.Wait(deadline(t))
	require.NoError(t, err)
	return status
}

// cancel ends a receive for which there is no message.
func cancel(t *testing.T, q Request) {
	t.Helper()
	q.Cancel()
	_, err := q.Wait(deadline(t))
	require.ErrorIs(t, err, ErrCanceled)
}

// posted is how many receives of this rank wait for a message.
func posted(c *Comm) (count int) {
	c.engine.do(func(efa.Progress) { count = c.engine.waiting() })
	return count
}

// waiting is how many receives there are here and with the provider.
func (e *engine) waiting() int {
	count := e.matcher.Posted()
	if e.provider != nil {
		count += e.provider.count
	}
	return count
}

// long is content for sizes where that takes too long to make.
func long(sender, i, size int) []byte {
	// A prime, so that no piece of a transfer looks like another.
	const period = 65521
	return bytes.Repeat(content(sender, i, min(size, period)), size/period+1)[:size]
}

// same is require.Equal for what nobody wants to see in full.
func same(t *testing.T, want, got []byte) {
	t.Helper()
	require.True(t, bytes.Equal(want, got), "%d bytes differ from those that were sent", len(want))
}

// twins duplicates the worlds, for what must not be matched with the rest.
func twins(t *testing.T, worlds []*Comm) []*Comm {
	t.Helper()
	all := make([]*Comm, len(worlds))
	onAll(worlds, func(rank int, c *Comm) {
		var err error
		all[rank], err = c.Dup(deadline(t))
		check(t, err == nil, "%v", err)
	})
	return all
}

// barrier returns when all ranks have called it. No wildcard of c may be open.
func barrier(t *testing.T, c *Comm) {
	t.Helper()
	for d := 1; d < c.Size(); d *= 2 {
		to, from := (c.Rank()+d)%c.Size(), (c.Rank()+c.Size()-d)%c.Size()
		_, err := c.Sendrecv(deadline(t), nil, to, 0, nil, from, 0)
		check(t, err == nil, "barrier: %v", err)
	}
}
