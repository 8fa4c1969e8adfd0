package comm

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// The cases of UCX's test_ucp_tag_offload ask which receives hardware may match, and
// which have to wait in software for those before them: short ones, wildcards. What a
// program sees of that is that the earliest receive gets the message, whatever was
// posted and canceled around it.

const offloadTag = 0x11

// goesTo sends a message, which the receive with buf is to get.
func goesTo(t *testing.T, zero, one *Comm, tag, i, size int, q Request, buf []byte) {
	t.Helper()
	require.GreaterOrEqual(t, len(buf), size)
	isend(t, zero, long(0, i, size), 1, tag)
	require.Equal(t, Status{Source: zero.Rank(), Tag: tag, Length: size}, finish(t, q))
	same(t, long(0, i, size), buf[:size])
}

func offloadAfterCancel(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	short, buf := make([]byte, 8), make([]byte, limit+1000)
	for range 2 {
		q := irecv(t, one, short, 0, offloadTag)
		require.Equal(t, 1, posted(one))
		cancel(t, q)
		require.Zero(t, posted(one))

		q = irecv(t, one, buf, 0, offloadTag)
		require.Equal(t, 1, posted(one))
		goesTo(t, zero, one, offloadTag, 1, len(buf), q, buf)
		require.Equal(t, make([]byte, 8), short)
		cancel(t, irecv(t, one, buf, 0, offloadTag))
		require.Zero(t, posted(one))
	}
}

func offloadAfterEnd(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	short, buf := make([]byte, 8), make([]byte, limit+1000)
	for i := range 2 {
		q := irecv(t, one, short, 0, offloadTag)
		require.Equal(t, 1, posted(one))
		goesTo(t, zero, one, offloadTag, i, 8, q, short)
		require.Zero(t, posted(one))
		q = irecv(t, one, buf, 0, offloadTag)
		require.Equal(t, 1, posted(one))
		cancel(t, q)
		require.Zero(t, posted(one))
	}
}

// A wildcard is before an exact receive, until it is canceled or has its message.
func offloadWild(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for _, canceled := range []bool{false, true} {
		wild, buf := make([]byte, limit+1000), make([]byte, limit+1000)
		first := irecv(t, one, wild, AnySource, AnyTag)
		next := irecv(t, one, buf, 0, offloadTag+2)
		require.Equal(t, 2, posted(one))
		if canceled {
			cancel(t, first)
		} else {
			goesTo(t, zero, one, offloadTag+2, 1, 8, first, wild)
		}
		goesTo(t, zero, one, offloadTag+2, 2, len(buf), next, buf)
		require.Zero(t, posted(one))

		first, next = irecv(t, one, wild, AnySource, AnyTag), irecv(t, one, buf, 0, offloadTag+2)
		cancel(t, first)
		cancel(t, next)
		require.Zero(t, posted(one))
	}
}

// Two receives of one tag, the first of them short, and one of another, which waits for
// neither.
func offloadTwoTags(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	post := func() (requests [3]Request, bufs [3][]byte) {
		for i, size := range []int{8, limit + 1000, limit + 1000} {
			bufs[i] = make([]byte, size)
			requests[i] = irecv(t, one, bufs[i], 0, offloadTag+i/2*2)
		}
		require.Equal(t, 3, posted(one))
		return requests, bufs
	}
	requests, bufs := post()
	for _, i := range []int{2, 0, 1} {
		goesTo(t, zero, one, offloadTag+i/2*2, i, len(bufs[i]), requests[i], bufs[i])
	}
	requests, _ = post()
	for _, q := range requests {
		cancel(t, q)
	}
	require.Zero(t, posted(one))
}

// postAll begins receives of one tag.
func postAll(t *testing.T, one *Comm, sizes []int) (requests []Request, bufs [][]byte) {
	t.Helper()
	for _, size := range sizes {
		buf := make([]byte, size)
		bufs = append(bufs, buf)
		requests = append(requests, irecv(t, one, buf, 0, offloadTag))
	}
	return requests, bufs
}

// Many short receives are before a long one.
func offloadLongLast(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	sizes := append(slices.Repeat([]int{8}, 7), limit+1000)
	requests, bufs := postAll(t, one, sizes)
	require.Equal(t, len(sizes), posted(one))
	for i, q := range requests {
		goesTo(t, zero, one, offloadTag, i, sizes[i], q, bufs[i])
	}
	requests, _ = postAll(t, one, sizes)
	for _, q := range requests {
		cancel(t, q)
	}
	require.Zero(t, posted(one))
}

// A long receive comes and goes behind short ones and wildcards, which go in turn.
func offloadBlocked(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	sizes := slices.Repeat([]int{8}, 5)
	requests, bufs := postAll(t, one, sizes)
	last := []Request{
		irecv(t, one, make([]byte, 64), AnySource, offloadTag),
		irecv(t, one, make([]byte, 8), 0, AnyTag),
	}
	buf := make([]byte, limit+1000)
	for i := range last {
		q := irecv(t, one, buf, 0, offloadTag)
		require.Equal(t, 8-i, posted(one))
		cancel(t, q)
		cancel(t, last[1-i])
	}
	q := irecv(t, one, buf, 0, offloadTag)
	require.Equal(t, 6, posted(one))
	for i := range requests {
		goesTo(t, zero, one, offloadTag, i, 8, requests[i], bufs[i])
	}
	goesTo(t, zero, one, offloadTag, 9, len(buf), q, buf)
	require.Zero(t, posted(one))
}

// inFront begins a receive, and another that is canceled: the first stays in front.
func inFront(t *testing.T, one *Comm, buf []byte, source, tag int) Request {
	t.Helper()
	q := irecv(t, one, buf, source, tag)
	cancel(t, irecv(t, one, make([]byte, len(buf)+1), source, tag))
	return q
}

// A short message for a long receive.
func offloadSendLess(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for _, size := range []int{4096, limit + 1000} {
		buf := make([]byte, size)
		goesTo(t, zero, one, offloadTag, 1, 1, inFront(t, one, buf, 0, offloadTag), buf)
		require.Equal(t, make([]byte, size-1), buf[1:])
	}
}

// Next to nothing, with a word of the receiver for each.
func offloadSmall(config Config) func(t *testing.T, b *bed) {
	return func(t *testing.T, b *bed) {
		zero, one := b.lend(t, config, efa.Config{EagerLimit: leastEager})
		for _, size := range []int{0, 1} {
			buf := make([]byte, size)
			r := inFront(t, one, buf, 0, offloadTag)
			s, err := zero.Issend(content(0, 1, size), 1, offloadTag)
			require.NoError(t, err)
			require.Equal(t, Status{Source: 0, Tag: offloadTag, Length: size}, finish(t, r))
			require.Equal(t, content(0, 1, size), buf)
			finish(t, s)
		}
	}
}

// inPieces opens a job of two ranks whose long messages come in many pieces.
func (b *bed) inPieces(t *testing.T) (zero, one *Comm) {
	t.Helper()
	return b.lend(t, Config{ReadPiece: 4000, ReadWindow: 2}, efa.Config{})
}

func offloadProbePieces(t *testing.T, b *bed) {
	zero, one := b.inPieces(t)
	for i, size := range []int{8000, 60_000} {
		probe(t, zero, one, offloadTag+i, size, size, false, true)
		probe(t, zero, one, offloadTag+i, size, size, false, false)
	}
}

// A receive is posted when some of its message may have come, and another behind it
// that must not get it.
func offloadReceivePieces(t *testing.T, b *bed) {
	zero, one := b.inPieces(t)
	const size = 60_000
	for looks := range 3 {
		s, err := zero.Isend(long(0, 1, size), 1, offloadTag)
		require.NoError(t, err)
		for range looks {
			_, _, err = one.Iprobe(AnySource, AnyTag)
			require.NoError(t, err)
		}
		bufs := [2][]byte{make([]byte, size), make([]byte, size)}
		first, next := irecv(t, one, bufs[0], 0, offloadTag), irecv(t, one, bufs[1], AnySource, AnyTag)
		goesTo(t, zero, one, offloadTag+1, 2, size, next, bufs[1])
		require.Equal(t, Status{Source: 0, Tag: offloadTag, Length: size}, finish(t, first))
		same(t, long(0, 1, size), bufs[0])
		finish(t, s)
	}
}

// Several ranks send with the same tags, and receives are for one of them.
func offloadSenders(t *testing.T, b *bed) {
	worlds := b.open(t, 4, Config{}, efa.Config{})
	zero := worlds[0]
	limit, err := zero.EagerLimit(1)
	require.NoError(t, err)
	transfer := func(from, tag, size int) {
		buf := make([]byte, size)
		q := inFront(t, zero, buf, from, tag)
		isend(t, worlds[from], content(from, tag, size), 0, tag)
		require.Equal(t, Status{Source: from, Tag: tag, Length: size}, finish(t, q))
		require.Equal(t, content(from, tag, size), buf)
	}
	for from := 1; from < 4; from++ {
		transfer(from, offloadTag, 8)
		transfer(from, offloadTag, limit+1000)
	}
	// All of them wait, and the messages come the other way round.
	var bufs [4][2][]byte
	var requests [4][2]Request
	for from := 1; from < 4; from++ {
		for i := range 2 {
			bufs[from][i] = make([]byte, limit+1000)
			requests[from][i] = irecv(t, zero, bufs[from][i], from, offloadTag+i)
		}
	}
	require.Equal(t, 6, posted(zero))
	cancel(t, requests[2][0])
	for from := 3; from > 0; from-- {
		for i := 1; i >= 0; i-- {
			if from == 2 && i == 0 {
				continue
			}
			size := 8 + i*limit
			isend(t, worlds[from], content(from, i, size), 0, offloadTag+i)
			require.Equal(t, Status{Source: from, Tag: offloadTag + i, Length: size}, finish(t, requests[from][i]))
			require.Equal(t, content(from, i, size), bufs[from][i][:size])
		}
	}
	require.Zero(t, posted(zero))
}

func offloadPost(t *testing.T, b *bed) {
	_, one, _ := b.two(t)
	for range 10 {
		q := irecv(t, one, make([]byte, 8), 0, offloadTag)
		require.Equal(t, 1, posted(one))
		cancel(t, q)
		require.Zero(t, posted(one))
	}
}

// However many receives there are, each can be canceled, and what comes then is for
// the next.
func offloadBlock(t *testing.T, b *bed) {
	zero, one, _ := b.two(t)
	cancel(t, irecv(t, one, make([]byte, 64), 0, AnyTag))
	requests, _ := postAll(t, one, slices.Repeat([]int{64}, 1000))
	require.Equal(t, 1000, posted(one))
	for _, q := range requests {
		cancel(t, q)
	}
	require.Zero(t, posted(one))
	buf := make([]byte, 64)
	goesTo(t, zero, one, offloadTag, 1, 64, irecv(t, one, buf, 0, offloadTag), buf)
}

// Which way a message goes can be told from the counts.
func offloadTransfer(size int, config Config) func(t *testing.T, b *bed) {
	return func(t *testing.T, b *bed) {
		zero, one := b.lend(t, config, efa.Config{})
		limit, err := zero.EagerLimit(1)
		require.NoError(t, err)
		read := size > limit && one.engine.readsRemotely()
		before := one.Stats().BytesRead
		for i := 1; i < 3; i++ {
			buf := make([]byte, size)
			goesTo(t, zero, one, offloadTag, i, size, inFront(t, one, buf, 0, offloadTag), buf)
			want := 0
			if read {
				want = i * size
			}
			require.EqualValues(t, want, one.Stats().BytesRead-before)
		}
	}
}
