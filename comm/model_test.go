package comm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/efa"
)

// naive is a matcher that is right because it is simple.
type naive struct {
	posted  []*naivePost
	waiting []*naiveMessage
}

type naivePost struct {
	source, tag, room int
	request           Request
	buf               []byte
	message           *naiveMessage // that it took
	// waited: there was one for it already. Which one, of those that are the earliest of
	// their sources, is open.
	waited         bool
	canceled, seen bool
}

type naiveMessage struct{ source, tag, size, number int }

func (p *naivePost) takes(m *naiveMessage) bool {
	return (p.source == AnySource || p.source == m.source) && (p.tag == AnyTag || p.tag == m.tag)
}

func (n *naive) arrive(m *naiveMessage) {
	for i, p := range n.posted {
		if p.takes(m) {
			p.message = m
			n.posted = append(n.posted[:i:i], n.posted[i+1:]...)
			return
		}
	}
	n.waiting = append(n.waiting, m)
}

func (n *naive) find(source, tag int) (int, *naiveMessage) {
	probe := &naivePost{source: source, tag: tag}
	for i, m := range n.waiting {
		if probe.takes(m) {
			return i, m
		}
	}
	return -1, nil
}

func (n *naive) post(p *naivePost) {
	if _, m := n.find(p.source, p.tag); m != nil {
		p.waited = true
		return
	}
	n.posted = append(n.posted, p)
}

// resolve takes out the message that a receive got which there was one for.
func (n *naive) resolve(p *naivePost, source int) {
	if i, m := n.find(source, p.tag); m != nil {
		p.message = m
		n.waiting = append(n.waiting[:i:i], n.waiting[i+1:]...)
	}
}

func (n *naive) cancel(p *naivePost) {
	for i, other := range n.posted {
		if other == p {
			n.posted = append(n.posted[:i:i], n.posted[i+1:]...)
			p.canceled = true
			return
		}
	}
}

// Programs of sends, receives, cancels and probes do what a naive matcher says, on two
// to four ranks, and whether the provider has all receives or few.
func TestAgainstNaiveMatcher(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		type job struct{ worlds, steps []*Comm }
		jobs := map[int]job{}
		for size, handedDown := range map[int]int{2: 0, 3: 3, 4: 1} {
			worlds := b.open(t, size, Config{HandedDown: handedDown}, efa.Config{})
			// What keeps the ranks in step must not be matched with the rest.
			jobs[size] = job{worlds, twins(t, worlds)}
		}
		limit, err := jobs[2].worlds[0].EagerLimit(1)
		require.NoError(t, err)
		number := 0
		rapid.Check(t, func(rt *rapid.T) {
			j := jobs[rapid.IntRange(2, 4).Draw(rt, "ranks")]
			runAgainstNaive(rt, t, j.worlds, j.steps, limit, &number)
		})
	})
}

// naiveRank is a rank, and what it should have.
type naiveRank struct {
	naive
	comm  *Comm
	posts []*naivePost
}

func runAgainstNaive(rt *rapid.T, t *testing.T, worlds, steps []*Comm, limit int, number *int) {
	ranks := make([]naiveRank, len(worlds))
	for i := range ranks {
		ranks[i].comm = worlds[i]
	}
	var sends []Request
	sizes := rapid.SampledFrom([]int{0, 1, 40, limit, limit + 1, 3 * limit})
	tags, rank := rapid.IntRange(0, 3), rapid.IntRange(0, len(worlds)-1)
	sources := rapid.SampledFrom(append([]int{AnySource}, []int{0, 1, 2, 3}[:len(worlds)]...))
	wildTags := rapid.SampledFrom([]int{AnyTag, 0, 1, 2, 3})
	for range rapid.IntRange(1, 40).Draw(rt, "steps") {
		to := rank.Draw(rt, "rank")
		r := &ranks[to]
		switch rapid.SampledFrom([]string{"send", "send", "send", "post", "post", "post", "cancel", "probe", "claim"}).Draw(rt, "step") {
		case "send":
			// Those of one sender are on their way together, and must not overtake each other.
			from := rank.Draw(rt, "from")
			for range rapid.IntRange(1, 4).Draw(rt, "messages") {
				*number++
				m := &naiveMessage{from, tags.Draw(rt, "tag"), sizes.Draw(rt, "size"), *number}
				send := worlds[from].Isend
				if rapid.Bool().Draw(rt, "synchronous") {
					send = worlds[from].Issend
				}
				q, err := send(content(m.source, m.number, m.size), to, m.tag)
				require.NoError(rt, err)
				sends = append(sends, q)
				r.arrive(m)
			}
			arrive(t, steps[from], steps[to])
		case "post":
			p := &naivePost{source: sources.Draw(rt, "source"), tag: wildTags.Draw(rt, "wanted"), room: sizes.Draw(rt, "room")}
			p.buf = make([]byte, p.room)
			var err error
			p.request, err = r.comm.Irecv(p.buf, p.source, p.tag)
			require.NoError(rt, err)
			r.posts = append(r.posts, p)
			r.post(p)
		case "cancel":
			if len(r.posts) > 0 {
				p := r.posts[rapid.IntRange(0, len(r.posts)-1).Draw(rt, "which")]
				if !p.seen {
					p.request.Cancel()
					r.cancel(p)
				}
			}
		case "probe":
			source, tag := sources.Draw(rt, "source"), wildTags.Draw(rt, "wanted")
			status, found, err := r.comm.Iprobe(source, tag)
			require.NoError(rt, err)
			_, m := r.find(source, tag)
			require.Equal(rt, m != nil, found)
			if m != nil {
				// The earliest of the source that it says.
				_, m = r.find(status.Source, tag)
				require.NotNil(rt, m)
				require.Equal(rt, Status{m.source, m.tag, m.size}, status)
			}
		case "claim":
			source, tag := sources.Draw(rt, "source"), wildTags.Draw(rt, "wanted")
			claimed, err := r.comm.Improbe(source, tag)
			require.NoError(rt, err)
			_, m := r.find(source, tag)
			require.Equal(rt, m != nil, claimed != nil)
			if m != nil {
				// The earliest of its source.
				i, m := r.find(claimed.Source, tag)
				require.NotNil(rt, m)
				r.waiting = append(r.waiting[:i:i], r.waiting[i+1:]...)
				buf := make([]byte, m.size)
				status, err := claimed.Recv(deadline(t), buf)
				require.NoError(rt, err)
				require.Equal(rt, Status{m.source, m.tag, m.size}, status)
				require.Equal(rt, content(m.source, m.number, m.size), buf)
			}
		}
		for _, p := range r.posts {
			p.verify(rt, t, &r.naive)
		}
	}
	for i := range ranks {
		r := &ranks[i]
		for _, p := range append([]*naivePost(nil), r.posted...) {
			p.request.Cancel()
			r.cancel(p)
			p.verify(rt, t, &r.naive)
		}
		for _, m := range r.waiting {
			expect(t, r.comm, m.source, m.tag, Status{m.source, m.tag, m.size}, m.number)
		}
	}
	require.NoError(rt, WaitAll(deadline(t), sends))
	for _, r := range ranks {
		_, messages, _ := used(r.comm)
		require.Zero(rt, messages)
	}
}

// verify waits for a receive that must be over by the model, and checks what it got.
func (p *naivePost) verify(rt *rapid.T, t *testing.T, model *naive) {
	if p.seen || p.message == nil && !p.canceled && !p.waited {
		return
	}
	p.seen = true
	status, err := p.request.Wait(deadline(t))
	if p.waited {
		model.resolve(p, status.Source)
		require.NotNil(rt, p.message, "%v, %v", status, err)
	}
	if p.canceled {
		require.ErrorIs(rt, err, ErrCanceled)
		return
	}
	m := p.message
	require.Equal(rt, Status{m.source, m.tag, m.size}, status)
	require.Equal(rt, content(m.source, m.number, m.size)[:min(m.size, p.room)], p.buf[:min(m.size, p.room)])
	if m.size <= p.room {
		require.NoError(rt, err)
		return
	}
	var truncated *TruncationError
	require.ErrorAs(rt, err, &truncated)
	require.Equal(rt, TruncationError{Size: m.size, Limit: p.room}, *truncated)
}
