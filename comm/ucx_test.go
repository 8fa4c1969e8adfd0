package comm

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// The cases of UCX's tests of tag matching, test/gtest/ucp/test_ucp_tag_match.cc, -probe,
// -cancel and -offload (ucx_offload_test.go), for communicators, each under its name
// there. Where UCX masks tags, receives are for AnyTag; where it has a threshold of
// rendezvous, there is an eager limit; what counts UCX's receives in software counts
// those that wait, here or with the provider. What UCX runs on several threads, goroutines
// do.
//
// Not here:
//
//	tag_match/send_recv_exp_iov                      a message is one slice, not a list
//	tag_match/send_recv_cb_release                   requests have no callbacks
//	tag_match_rndv/req_exp_auto_thresh               the eager limit is not chosen while running
//	tag_match*, external requests                    requests are never the caller's memory
//	tag_probe/limited_probe_size, how many at most   turns take what has come, unbounded
//	tag_offload/connect                              each job does, in both modes
//	tag_offload/sw_rndv_rx_generic                   no data types
//	tag_offload_selection/tag_lane                   who matches is a setting
//	tag_offload_status/check_offload_status          who matches is a setting
//	tag_offload_stats/sw_rndv                        a message is one slice, not a list
//	tag_offload_gpu, tag_offload_stats_gpu           memory is the host's
func TestUCX(t *testing.T) {
	for _, group := range []struct {
		name  string
		cases []originCase
	}{
		{"tag_match", []originCase{
			{"send_recv_unexp", ucxUnexpected},
			{"send_recv_unexp_rqfree", ucxFreed},
			{"send_recv_exp_medium", ucxMedium},
			{"send2_nb_recv_exp_medium", ucxMediumTwice},
			{"send2_nb_recv_medium_wildcard", ucxTwoSenders},
			{"send_recv_nb_partial_exp_medium", ucxPartial},
			{"send_nb_recv_unexp", ucxIsendUnexpected},
			{"send_recv_truncated", ucxTruncated},
			{"send_recv_nb_exp", ucxExpected},
			{"send_nb_multiple_recv_unexp", ucxMany},
			{"sync_send_unexp", ucxSynchronous},
		}},
		{"tag_match_rndv", []originCase{
			{"length0", rendezvous(ucxLengthZero)},
			{"sync_send_unexp", rendezvous(ucxSynchronousLong)},
			{"req_exp", rendezvous(ucxExpectedLong)},
			{"rts_unexp", rendezvous(ucxUnexpectedLong)},
			{"truncated", rendezvous(ucxTruncatedLong)},
			{"post_larger_recv", rendezvous(ucxLargerReceive)},
			{"exp_huge_mix", rendezvous(ucxHugeMix)},
			{"bidir_multi_exp_post", rendezvous(ucxBothWays)},
		}},
		{"tag_probe", []originCase{
			{"send_probe", ucxProbe},
			{"send_medium_msg_probe", ucxProbeMedium},
			{"send_medium_msg_probe_truncated", ucxProbeTruncated},
			{"send_rndv_msg_probe", rendezvous(ucxProbeLong)},
			{"send_2_msg_probe", ucxProbeTwo},
			{"limited_probe_size", ucxProbeMany},
		}},
		{"tag_cancel", []originCase{
			{"cancel_exp", ucxCancel},
		}},
		{"tag_offload", []originCase{
			{"post_after_cancel", offloadAfterCancel},
			{"post_after_comp", offloadAfterEnd},
			{"post_wild", offloadWild},
			{"post_dif_buckets", offloadTwoTags},
			{"force_thresh_basic", offloadLongLast},
			{"force_thresh_blocked", offloadBlocked},
			{"eager_send_less", offloadSendLess},
			{"small_rndv", offloadSmall(Config{})},
			{"small_sw_rndv", offloadSmall(Config{NoRemoteReads: true})},
			{"eager_multi_probe", offloadProbePieces},
			{"eager_multi_recv", offloadReceivePieces},
		}},
		{"tag_offload_multi", []originCase{
			{"recv_from_multi", offloadSenders},
		}},
		{"tag_offload_stats", []originCase{
			{"post", offloadPost},
			{"block", offloadBlock},
			{"eager", offloadTransfer(512, Config{})},
			{"rndv", offloadTransfer(20_480, Config{})},
			{"force_sw_rndv", offloadTransfer(20_480, Config{NoRemoteReads: true})},
		}},
	} {
		t.Run(group.name, func(t *testing.T) { runCases(t, group.cases) })
	}
}

const (
	ucxTag    = 0x111337
	ucxMiddle = 50_000
	ucxLong   = 1_148_576
)

// patterns are all receives that take a message of rank 0 with ucxTag.
var patterns = [][2]int{{0, ucxTag}, {0, AnyTag}, {AnySource, ucxTag}, {AnySource, AnyTag}}

func ucxUnexpected(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for _, size := range kinds(limit) {
		for _, p := range patterns {
			isend(t, zero, content(0, 1, size), 1, ucxTag)
			arrive(t, zero, one)
			expect(t, one, p[0], p[1], Status{Source: 0, Tag: ucxTag, Length: size}, 1)
		}
	}
}

// The request is forgotten before there is a message for it.
func ucxFreed(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for _, size := range kinds(limit) {
		buf := make([]byte, size)
		irecv(t, one, buf, 0, ucxTag)
		require.NoError(t, zero.Send(deadline(t), content(0, 1, size), 1, ucxTag))
		arrive(t, zero, one)
		settled(t, one)
		require.Equal(t, content(0, 1, size), buf)
	}
}

// medium is a message of the middle size, which is still eager, to a receive that
// waits for it.
func medium(t *testing.T, zero, one *Comm, i int, wait func(Request) Status) {
	t.Helper()
	buf := make([]byte, ucxMiddle)
	q := irecv(t, one, buf, AnySource, AnyTag)
	isend(t, zero, content(0, i, ucxMiddle), 1, ucxTag)
	require.Equal(t, Status{Source: 0, Tag: ucxTag, Length: ucxMiddle}, wait(q))
	require.Equal(t, content(0, i, ucxMiddle), buf)
}

func ucxMedium(t *testing.T, b *bed) {
	zero, one := b.withEager(t, 1<<16)
	medium(t, zero, one, 1, func(q Request) Status { return finish(t, q) })
}

func ucxMediumTwice(t *testing.T, b *bed) {
	zero, one := b.withEager(t, 1<<16)
	for i := range 2 {
		medium(t, zero, one, i, func(q Request) Status { return finish(t, q) })
	}
}

// The receiver looks again and again and never waits.
func ucxPartial(t *testing.T, b *bed) {
	zero, one := b.withEager(t, 1<<16)
	medium(t, zero, one, 1, func(q Request) (status Status) {
		ctx := deadline(t)
		for done := false; !done; {
			require.NoError(t, ctx.Err())
			var err error
			status, done, err = q.Test()
			require.NoError(t, err)
		}
		return status
	})
}

// Two ranks send, and two receives take what comes, in any order.
func ucxTwoSenders(t *testing.T, b *bed) {
	worlds := b.open(t, 3, Config{}, efa.Config{})
	size := 300_000
	if b.fast() {
		size = 3_000_000
	}
	for _, expected := range []bool{false, true} {
		send := func() {
			for rank := 1; rank < 3; rank++ {
				isend(t, worlds[rank], long(rank, 1, size), 0, rank)
			}
		}
		if !expected {
			send()
			arrive(t, worlds[1], worlds[0])
			arrive(t, worlds[2], worlds[0])
		}
		bufs := [2][]byte{make([]byte, size), make([]byte, size)}
		requests := [2]Request{}
		for i := range requests {
			requests[i] = irecv(t, worlds[0], bufs[i], AnySource, AnyTag)
		}
		if expected {
			send()
		}
		seen := map[int]bool{}
		for i, q := range requests {
			status := finish(t, q)
			require.Equal(t, Status{Source: status.Tag, Tag: status.Tag, Length: size}, status)
			same(t, long(status.Tag, 1, size), bufs[i])
			seen[status.Tag] = true
		}
		require.Equal(t, map[int]bool{1: true, 2: true}, seen)
	}
}

// What was sent is done when the receiver has it.
func ucxIsendUnexpected(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for _, size := range kinds(limit) {
		q, err := zero.Isend(content(0, 1, size), 1, ucxTag)
		require.NoError(t, err)
		_, _, err = one.Iprobe(AnySource, AnyTag)
		require.NoError(t, err)
		expect(t, one, AnySource, AnyTag, Status{Source: 0, Tag: ucxTag, Length: size}, 1)
		finish(t, q)
	}
}

func ucxTruncated(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for _, size := range []int{8, limit} {
		truncate(t, zero, one, size)
	}
}

// truncate receives a message into too little memory: the receive has both lengths,
// nothing beyond the buffer is touched, and the next message is not concerned.
func truncate(t *testing.T, zero, one *Comm, size int) {
	t.Helper()
	for _, room := range []int{0, 5, size - 1} {
		for _, early := range []bool{false, true} {
			memory := make([]byte, size+100)
			var q Request
			if early {
				q = irecv(t, one, memory[:room:room], 0, ucxTag)
			}
			isend(t, zero, long(0, 1, size), 1, ucxTag)
			if !early {
				arrive(t, zero, one)
				q = irecv(t, one, memory[:room:room], 0, ucxTag)
			}
			status, err := q.Wait(deadline(t))
			var truncated *TruncationError
			require.ErrorAs(t, err, &truncated)
			require.Equal(t, TruncationError{Size: size, Limit: room}, *truncated)
			require.Equal(t, Status{Source: 0, Tag: ucxTag, Length: size}, status)
			same(t, long(0, 1, size)[:room], memory[:room])
			same(t, make([]byte, len(memory)-room), memory[room:])
			isend(t, zero, content(0, 2, 30), 1, ucxTag)
			expect(t, one, 0, ucxTag, Status{Source: 0, Tag: ucxTag, Length: 30}, 2)
		}
	}
}

func ucxExpected(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for _, size := range kinds(limit) {
		for _, p := range patterns {
			buf := make([]byte, size)
			q := irecv(t, one, buf, p[0], p[1])
			_, done, err := q.Test()
			require.NoError(t, err)
			require.False(t, done, "nothing was sent")
			require.NoError(t, zero.Send(deadline(t), content(0, 2, size), 1, ucxTag))
			require.Equal(t, Status{Source: 0, Tag: ucxTag, Length: size}, finish(t, q))
			require.Equal(t, content(0, 2, size), buf)
		}
	}
}

// What waits is taken in the order of arrival.
func ucxMany(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for name, size := range kinds(limit) {
		count := 1000
		if name == "rendezvous" {
			count = 20
		}
		for i := range count {
			isend(t, zero, content(0, i, size), 1, ucxTag)
		}
		for i := range count {
			expect(t, one, 0, AnyTag, Status{Source: 0, Tag: ucxTag, Length: size}, i)
		}
	}
}

func ucxSynchronous(t *testing.T, b *bed) {
	zero, one, limit := b.two(t)
	for _, size := range []int{0, 8, limit, limit + 1} {
		synchronous(t, zero, one, size)
	}
}

// synchronous has a synchronous send end with the match and not before.
func synchronous(t *testing.T, zero, one *Comm, size int) {
	t.Helper()
	q, err := zero.Issend(content(0, 1, size), 1, ucxTag)
	require.NoError(t, err)
	arrive(t, zero, one)
	arrive(t, one, zero)
	_, done, err := q.Test()
	require.NoError(t, err)
	require.False(t, done, "%d bytes", size)
	expect(t, one, AnySource, AnyTag, Status{Source: 0, Tag: ucxTag, Length: size}, 1)
	finish(t, q)
}

// probe looks for a message and receives it, or what there is room for. claim says that
// it is taken out by the probe.
func probe(t *testing.T, zero, one *Comm, tag, size, room int, synchronous, claim bool) {
	ctx := deadline(t)
	_, found, err := one.Iprobe(AnySource, tag)
	check(t, err == nil && !found, "%v", err)
	m, err := one.Improbe(AnySource, tag)
	check(t, err == nil && m == nil, "%v", err)
	send := zero.Isend
	if synchronous {
		send = zero.Issend
	}
	q, err := send(content(0, tag, size), 1, tag)
	if !check(t, err == nil, "%v", err) {
		return
	}
	var status Status
	for found = false; !found && err == nil && ctx.Err() == nil; {
		if !claim {
			status, found, err = one.Iprobe(AnySource, tag)
		} else if m, err = one.Improbe(AnySource, tag); m != nil {
			status, found = m.Status, true
		}
	}
	want := Status{Source: 0, Tag: tag, Length: size}
	if !check(t, found && status == want, "%v, %v", status, err) {
		return
	}
	buf := make([]byte, room)
	if claim {
		status, err = m.Recv(ctx, buf)
	} else {
		status, err = one.Recv(ctx, buf, AnySource, tag)
	}
	_, truncated := err.(*TruncationError)
	check(t, truncated == (room < size) && (truncated || err == nil) && status == want, "%v, %v", status, err)
	check(t, string(buf) == string(content(0, tag, size)[:room]), "content of %d", tag)
	_, err = q.Wait(ctx)
	check(t, err == nil, "%v", err)
}

// threads runs f several times at once.
func threads(f func(i int)) {
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

func ucxProbe(t *testing.T, b *bed) {
	zero, one, _ := b.two(t)
	threads(func(i int) {
		probe(t, zero, one, ucxTag+i, 8, 8, false, false)
		probe(t, zero, one, ucxTag+i, 8, 8, true, false)
	})
}

func ucxProbeMedium(t *testing.T, b *bed) {
	zero, one := b.withEager(t, 1<<16)
	threads(func(i int) {
		probe(t, zero, one, ucxTag+i, ucxMiddle, ucxMiddle, false, true)
		probe(t, zero, one, ucxTag+i, ucxMiddle, ucxMiddle, true, true)
	})
}

func ucxProbeTruncated(t *testing.T, b *bed) {
	zero, one := b.withEager(t, 1<<16)
	threads(func(i int) {
		probe(t, zero, one, ucxTag+i, ucxMiddle, 0, false, true)
		probe(t, zero, one, ucxTag+i, ucxMiddle, 0, true, true)
	})
}

// Two are claimed, and received in reverse.
func ucxProbeTwo(t *testing.T, b *bed) {
	zero, one := b.withEager(t, 1<<16)
	ctx := deadline(t)
	for _, size := range []int{ucxMiddle, 80_000} {
		want := Status{Source: 0, Tag: ucxTag, Length: size}
		isend(t, zero, content(0, 1, size), 1, ucxTag)
		isend(t, zero, content(0, 2, size), 1, ucxTag)
		first, err := one.Mprobe(ctx, 0, AnyTag)
		require.NoError(t, err)
		require.Equal(t, want, first.Status)
		next, err := one.Mprobe(ctx, AnySource, ucxTag)
		require.NoError(t, err)
		require.Equal(t, want, next.Status)
		_, found, err := one.Iprobe(AnySource, AnyTag)
		require.NoError(t, err)
		require.False(t, found)
		for i, m := range []*Message{next, first} {
			buf := make([]byte, size)
			status, err := m.Recv(ctx, buf)
			require.NoError(t, err)
			require.Equal(t, want, status)
			require.Equal(t, content(0, 2-i, size), buf)
		}
	}
}

// Probes take out all that has come, until there was all.
func ucxProbeMany(t *testing.T, b *bed) {
	zero, one, _ := b.two(t)
	const count, size = 1000, 100
	for i := range count {
		isend(t, zero, content(0, i, size), 1, ucxTag)
	}
	ctx := deadline(t)
	buf := make([]byte, size)
	for received := 0; received < count; {
		require.NoError(t, ctx.Err())
		m, err := one.Improbe(AnySource, AnyTag)
		require.NoError(t, err)
		if m == nil {
			continue
		}
		status, err := m.Recv(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, Status{Source: 0, Tag: ucxTag, Length: size}, status)
		require.Equal(t, content(0, received, size), buf)
		received++
	}
}

func ucxCancel(t *testing.T, b *bed) {
	_, one, _ := b.two(t)
	threads(func(int) {
		buf := make([]byte, 8)
		q, err := one.Irecv(buf, AnySource, 1)
		if !check(t, err == nil, "%v", err) {
			return
		}
		q.Cancel()
		_, err = q.Wait(deadline(t))
		check(t, err == ErrCanceled, "%v", err)
		check(t, string(buf) == string(make([]byte, 8)), "the buffer has changed")
	})
	require.Zero(t, posted(one))
}
