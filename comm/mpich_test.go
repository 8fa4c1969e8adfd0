package comm

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// The cases of MPICH's test/mpi/pt2pt, for communicators, each under its name there.
//
// Not here:
//
//	mprobe, tests 4 to 7      there is no MPI_PROC_NULL; such a rank is an ArgumentError
//	mprobe, tests 10 and 11   no data types
//	mprobe, MPI_ERROR, f2c    errors are Go's, and there is no Fortran
//	rqfree, Ibsend, Irsend    no modes but standard and synchronous: they are Isends
//	sendrecv3, half a second  no time is asserted; that Isends wait for nobody is
//	sendflood, 100000 rounds  fewer
//	huge_anysrc, 320 MiB      64
func TestMPICH(t *testing.T) {
	runCases(t, []originCase{
		{"rcancel", mpichCancel},
		{"mprobe", mpichMprobe},
		{"sendrecv3", mpichHeadToHead},
		{"cancelanysrc", mpichCancelAnySource},
		{"sendflood", mpichFlood},
		{"probe_unexp", mpichProbe},
		{"huge_underflow", mpichUnderflow},
		{"huge_anysrc", mpichHugeAnySource},
		{"large_tag", mpichLargeTag},
		{"many_isend", mpichAllToAll},
		{"recv_any", mpichReceiveAny},
		{"rqfree", mpichFree},
	})
}

// Of four receives three are canceled, in the order 2, 3, 0; the message goes to the
// one that is left.
func mpichCancel(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for _, size := range []int{0, 64, limit + 1000} {
		for _, tags := range [][4]int{{0, 1, 2, 3}, {1, 1, 1, 1}, {AnyTag, AnyTag, AnyTag, AnyTag}} {
			for _, source := range []int{0, AnySource} {
				var bufs [4][]byte
				var requests [4]Request
				for i, room := range []int{1, max(100, size), 10_000, 1_000_000} {
					bufs[i] = make([]byte, room)
					requests[i] = irecv(t, one, bufs[i], source, tags[i])
				}
				for _, i := range []int{2, 3, 0} {
					cancel(t, requests[i])
				}
				isend(t, zero, content(0, 1, size), 1, 1)
				require.Equal(t, Status{Source: 0, Tag: 1, Length: size}, finish(t, requests[1]))
				require.Equal(t, content(0, 1, size), bufs[1][:size])
				// What comes after a cancel is for the next receive.
				isend(t, zero, content(0, 2, size), 1, 1)
				expect(t, one, 0, 1, Status{Source: 0, Tag: 1, Length: size}, 2)
			}
		}
	}
}

// Each way to claim a message, and each to receive it.
func mpichMprobe(t *testing.T, b *bed) {
	zero, one, _ := b.two(t)
	mprobe := func() *Message {
		m, err := one.Mprobe(deadline(t), 0, 5)
		require.NoError(t, err)
		return m
	}
	improbe := func() *Message {
		ctx := deadline(t)
		for {
			require.NoError(t, ctx.Err())
			m, err := one.Improbe(0, 5)
			require.NoError(t, err)
			if m != nil {
				return m
			}
		}
	}
	mrecv := func(m *Message, buf []byte) Status {
		status, err := m.Recv(deadline(t), buf)
		require.NoError(t, err)
		return status
	}
	imrecv := func(m *Message, buf []byte) Status {
		q, err := m.Irecv(buf)
		require.NoError(t, err)
		return finish(t, q)
	}
	const large = 512 * 512 * 4
	for name, c := range map[string]struct {
		send    func([]byte, int, int) (Request, error)
		size    int
		probe   func() *Message
		receive func(*Message, []byte) Status
	}{
		"0": {zero.Isend, 8, mprobe, mrecv},
		"1": {zero.Isend, 8, mprobe, imrecv},
		"2": {zero.Isend, 8, improbe, mrecv},
		"3": {zero.Isend, 8, improbe, imrecv},
		"8": {zero.Issend, 8, mprobe, mrecv},
		"9": {zero.Isend, large, mprobe, mrecv},
	} {
		want := Status{Source: 0, Tag: 5, Length: c.size}
		q, err := c.send(content(0, 1, c.size), 1, 5)
		require.NoError(t, err, name)
		m := c.probe()
		require.Equal(t, want, m.Status, name)
		buf := make([]byte, c.size)
		require.Equal(t, want, c.receive(m, buf), name)
		require.Equal(t, content(0, 1, c.size), buf, name)
		finish(t, q)
		// The message is no more.
		var wrong *ArgumentError
		_, err = m.Recv(deadline(t), buf)
		require.ErrorAs(t, err, &wrong)
		_, err = m.Irecv(buf)
		require.ErrorAs(t, err, &wrong)
	}
	// Test 12, the order: what was claimed is out of a receive's reach.
	for _, sizes := range [][2]int{{16, 8}, {large, 8}, {16, large}} {
		for i, size := range sizes {
			isend(t, zero, content(0, i, size), 1, 5)
		}
		m := mprobe()
		require.Equal(t, Status{Source: 0, Tag: 5, Length: sizes[0]}, m.Status)
		expect(t, one, 0, 5, Status{Source: 0, Tag: 5, Length: sizes[1]}, 1)
		buf := make([]byte, sizes[0])
		require.Equal(t, m.Status, mrecv(m, buf))
		require.Equal(t, content(0, 0, sizes[0]), buf)
	}
}

// Two ranks send as much as they can at each other before they receive, and again with
// one that begins only when the other has sent everything.
func mpichHeadToHead(t *testing.T, b *bed) {
	zero, one, _ := b.two(t)
	worlds := []*Comm{zero, one}
	for number, c := range []struct{ size, count int }{{100, 100}, {1000, 10}, {10_000, 10}, {100_000, 4}} {
		for _, late := range []bool{false, true} {
			sent := make(chan struct{})
			onAll(worlds, func(rank int, w *Comm) {
				ctx, partner := deadline(t), 1-rank
				_, err := w.Sendrecv(ctx, nil, partner, 10, nil, partner, 10)
				check(t, err == nil, "%v", err)
				if late && rank == 1 {
					<-sent
				}
				var requests []Request
				for i := range c.count {
					q, err := w.Isend(content(rank, i, c.size), partner, number)
					check(t, err == nil, "%v", err)
					requests = append(requests, q)
				}
				if rank == 0 {
					close(sent)
				}
				buf := make([]byte, c.size)
				for i := range c.count {
					status, err := w.Recv(ctx, buf, partner, number)
					check(t, err == nil && status.Length == c.size, "%v, %v", status, err)
					check(t, string(buf) == string(content(partner, i, c.size)), "message %d of %d bytes", i, c.size)
				}
				err = WaitAll(ctx, requests)
				check(t, err == nil, "%v", err)
			})
		}
	}
}

// A receive from anywhere that was canceled has no part in what comes.
func mpichCancelAnySource(t *testing.T, b *bed) {
	zero, one, _ := b.two(t)
	worlds := []*Comm{zero, one}
	steps := twins(t, worlds)
	onAll(worlds, func(rank int, c *Comm) {
		ctx := deadline(t)
		if rank == 1 {
			barrier(t, steps[1])
			err := c.Send(ctx, []byte{42}, 0, 0)
			check(t, err == nil, "%v", err)
			return
		}
		buf := make([]byte, 1)
		q, err := c.Irecv(buf, AnySource, 0)
		check(t, err == nil, "%v", err)
		q.Cancel()
		_, err = q.Wait(ctx)
		check(t, err == ErrCanceled && buf[0] == 0, "%v", err)
		barrier(t, steps[0])
		q, err = c.Irecv(buf, AnySource, 0)
		check(t, err == nil, "%v", err)
		status, err := q.Wait(ctx)
		check(t, err == nil && status == Status{Source: 1, Tag: 0, Length: 1} && buf[0] == 42, "%v, %v", status, err)
	})
}

// All ranks send to one, which answers when it has heard all of them: no message may
// be lost.
func mpichFlood(t *testing.T, b *bed) {
	const tag = 999
	size, rounds := 4, 20
	if b.fast() {
		size, rounds = 8, 40
	}
	worlds := b.open(t, size, Config{}, efa.Config{WindowMessages: 32})
	ctx := deadline(t)
	onAll(worlds, func(rank int, c *Comm) {
		send := func(to, round int) bool {
			message := binary.LittleEndian.AppendUint64(make([]byte, 16), uint64(round))
			err := c.Send(ctx, message, to, tag)
			return check(t, err == nil, "round %d: %v", round, err)
		}
		receive := func(from, round int) bool {
			buf := make([]byte, 32)
			status, err := c.Recv(ctx, buf, from, tag)
			return check(t, err == nil && status == Status{Source: from, Tag: tag, Length: 24}, "%v, %v", status, err) &&
				check(t, binary.LittleEndian.Uint64(buf[16:]) == uint64(round), "round %d", round)
		}
		for round := range rounds {
			if rank > 0 {
				if !send(0, round) || !receive(0, round) {
					return
				}
				continue
			}
			for from := 1; from < size; from++ {
				if !receive(from, round) {
					return
				}
			}
			for to := 1; to < size; to++ {
				if !send(to, round) {
					return
				}
			}
		}
	})
}

// A probe that waits already sees what comes, of any length.
func mpichProbe(t *testing.T, b *bed) {
	const size, times = 3, 2
	most := 14
	if b.fast() {
		most = 22
	}
	worlds := b.open(t, size, Config{}, efa.Config{})
	onAll(worlds, func(rank int, c *Comm) {
		ctx := deadline(t)
		for power := 0; power <= most; power += 2 {
			for i := range times {
				length, tag := 1<<power, power*times+i
				if rank == 0 {
					for range size - 1 {
						status, err := c.Recv(ctx, nil, AnySource, tag)
						if check(t, err == nil && status.Tag == tag, "%v, %v", status, err) {
							err = c.Send(ctx, long(0, tag, length), status.Source, status.Tag)
							check(t, err == nil, "%v", err)
						}
					}
					continue
				}
				err := c.Send(ctx, nil, 0, tag)
				check(t, err == nil, "%v", err)
				want := Status{Source: 0, Tag: tag, Length: length}
				status, err := c.Probe(ctx, AnySource, AnyTag)
				check(t, err == nil && status == want, "%v, %v", status, err)
				buf := make([]byte, length)
				status, err = c.Recv(ctx, buf, 0, tag)
				check(t, err == nil && status == want, "%v, %v", status, err)
				check(t, string(buf) == string(long(0, tag, length)), "message %d", tag)
			}
		}
	})
}

// One byte for a huge receive.
func mpichUnderflow(t *testing.T, b *bed) {
	zero, one, _ := b.two(t)
	const huge = 10 << 20
	for _, early := range []bool{false, true} {
		buf := make([]byte, huge)
		var q Request
		if early {
			q = irecv(t, one, buf, 0, 0)
		}
		isend(t, zero, []byte{77}, 1, 0)
		if !early {
			q = irecv(t, one, buf, 0, 0)
		}
		require.Equal(t, Status{Source: 0, Length: 1}, finish(t, q))
		require.EqualValues(t, 77, buf[0])
		same(t, make([]byte, huge-1), buf[1:])
	}
}

// Many long messages are under way to receives from anywhere.
func mpichHugeAnySource(t *testing.T, b *bed) {
	const count = 32
	zero, one, _ := b.two(t)
	size := 64 << 10
	if b.fast() {
		size = 2 << 20
	}
	var sends, receives []Request
	buf := make([]byte, count*size)
	for i := range count {
		q, err := zero.Isend(long(0, i, size), 1, 0)
		require.NoError(t, err)
		sends = append(sends, q)
		receives = append(receives, irecv(t, one, buf[i*size:][:size], AnySource, 0))
	}
	require.NoError(t, WaitAll(deadline(t), sends))
	require.NoError(t, WaitAll(deadline(t), receives))
	for i := range count {
		same(t, long(0, i, size), buf[i*size:][:size])
	}
}

func mpichLargeTag(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for _, size := range []int{64, limit + 1} {
		for i := range 5 {
			isend(t, zero, content(0, i, size), 1, MaxTag-i)
			expect(t, one, 0, MaxTag-i, Status{Source: 0, Tag: MaxTag - i, Length: size}, i)
		}
	}
}

// All ranks send to all, themselves included, and receive what comes one by one.
func mpichAllToAll(t *testing.T, b *bed) {
	const size, rounds, length = 4, 5, 4096
	worlds := b.open(t, size, Config{}, efa.Config{})
	steps := twins(t, worlds)
	onAll(worlds, func(rank int, c *Comm) {
		ctx := deadline(t)
		for round := range rounds {
			barrier(t, steps[rank])
			var requests []Request
			for to := range size {
				q, err := c.Isend(content(rank, round*size+to, length), to, 0)
				check(t, err == nil, "%v", err)
				requests = append(requests, q)
			}
			seen := map[int]bool{}
			buf := make([]byte, length)
			for range size {
				status, err := c.Recv(ctx, buf, AnySource, AnyTag)
				check(t, err == nil && status.Length == length && !seen[status.Source], "%v, %v", status, err)
				check(t, string(buf) == string(content(status.Source, round*size+rank, length)), "round %d from %d", round, status.Source)
				seen[status.Source] = true
			}
			err := WaitAll(ctx, requests)
			check(t, err == nil, "%v", err)
		}
	})
}

// Receives from anywhere, waited for at once and later.
func mpichReceiveAny(t *testing.T, b *bed) {
	worlds := b.open(t, 3, Config{}, efa.Config{})
	onAll(worlds, func(rank int, c *Comm) {
		ctx := deadline(t)
		for i := range 20 {
			if rank == 1 {
				err := c.Send(ctx, content(1, i, 16), 0, i)
				check(t, err == nil, "%v", err)
			}
			if rank != 0 {
				continue
			}
			buf := make([]byte, 16)
			var status Status
			q, err := Request{}, error(nil)
			if i%2 == 0 {
				status, err = c.Recv(ctx, buf, AnySource, i)
			} else if q, err = c.Irecv(buf, AnySource, i); err == nil {
				status, err = q.Wait(ctx)
			}
			check(t, err == nil && status == Status{Source: 1, Tag: i, Length: 16}, "%v, %v", status, err)
			check(t, string(buf) == string(content(1, i, 16)), "message %d", i)
		}
	})
}

// Requests that are begun and forgotten end all the same.
func mpichFree(t *testing.T, b *bed) {
	zero, one, _ := b.two(t)
	const large = 40_000
	sizes := [6]int{4, 4, 4, 4, 4, large}
	bufs := [6][]byte{}
	requests := [6]Request{}
	for i, size := range sizes {
		bufs[i] = make([]byte, size)
		requests[i] = irecv(t, one, bufs[i], 0, 1+i)
	}
	onAll([]*Comm{zero, one}, func(_ int, c *Comm) { barrier(t, c) })
	for i, size := range sizes {
		send := zero.Isend
		if i == 2 {
			send = zero.Issend
		}
		q, err := send(content(0, i, size), 1, 1+i)
		require.NoError(t, err)
		if i > 3 {
			finish(t, q)
		}
	}
	for i := range 4 {
		require.Equal(t, Status{Source: 0, Tag: 1 + i, Length: 4}, finish(t, requests[i]))
	}
	// The others are never asked for. What they are about has come before this.
	arrive(t, zero, one)
	arrive(t, one, zero)
	settled(t, zero)
	settled(t, one)
	for i, size := range sizes {
		require.Equal(t, content(0, i, size), bufs[i])
	}
}
