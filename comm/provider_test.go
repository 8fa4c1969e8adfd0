package comm

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/jobtest"
	"github.com/weft-go/weft/tagged"
)

// What is special where the provider matches. That a program sees the same in both modes
// is what the other tests show, which run in both. Which row of the design is where:
//
//	matching is by the device, and how much of it         TestProviderMatches
//	all ranks have one mode, and devices that can         TestMixedMatching, TestDeviceThatCannotMatch
//	more receives than the device is given                TestOverflow
//	a receive is posted while its message comes up        TestReceivesAmidMessages
//	cancel, exactly once                                  TestCancelAmidMessages
//	a message to oneself, and a receive handed down       TestOwnMessageAmidOthers
//	credit runs out, and comes back                       TestCreditComesBack, TestUnexpectedIsBounded
//	messages of strangers                                 TestStrangerIsNotMatched
//	wrong words of a rank                                 TestWrongMatchedMessages
//	contexts run out                                      TestContextsRunOut
//	Close delivers what nobody has received               TestCloseBringsEverything
//	a rank is lost, and its messages are there            TestRankIsLost, TestLostRankWasHeldBack

// Receives that are posted before their messages are matched by the device, and nothing
// else is brought up.
func TestProviderMatches(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		zero, one, limit := b.pair(t)
		const count = 50
		before, sent := one.Stats().MatchedReceived, zero.Stats().MatchedSent
		var requests []*Request
		for i := range count {
			requests = append(requests, irecv(t, one, make([]byte, limit+1), 0, i))
		}
		one.engine.do(func(efa.Progress) {
			check(t, one.engine.provider.count == min(count, one.engine.provider.most), "%d are handed down", one.engine.provider.count)
		})
		for i := range count {
			isend(t, zero, content(0, i, i*(limit/count)), 1, i)
		}
		isend(t, zero, content(0, 0, limit), 1, count)
		for i, q := range requests {
			require.Equal(t, Status{Source: 0, Tag: i, Length: i * (limit / count)}, finish(t, q))
		}
		require.EqualValues(t, count, one.Stats().MatchedReceived-before)
		require.EqualValues(t, count+1, zero.Stats().MatchedSent-sent)
		_, messages, _ := used(one)
		require.Zero(t, messages, "the last stays with the provider")
		expect(t, one, 0, AnyTag, Status{Source: 0, Tag: count, Length: limit}, 0)
	})
}

// Ranks that do not agree are told so, each with the name of another.
func TestMixedMatching(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Name != "fake" && b.Provider != "tcp" {
			return
		}
		const size = 3
		m := jobtest.NewMeeting(size)
		errs := make([]error, size)
		var all sync.WaitGroup
		for rank := range size {
			c := Config{Rank: rank, Size: size, Exchange: m.Exchange(rank), Logger: quiet, Matching: b.matching}
			if rank == 1 {
				c.Matching = MatchByProvider - b.matching
			}
			c.Engine = b.engine(t)
			all.Go(func() {
				world, err := Open(deadline(t), c)
				if errs[rank] = err; err == nil {
					_ = world.Close()
				}
			})
		}
		all.Wait()
		for _, err := range errs {
			var wrong *ConfigError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, "Matching", wrong.Field)
		}
		require.ErrorContains(t, errs[0], "rank 1")
		require.ErrorContains(t, errs[1], "rank 0")
		require.ErrorContains(t, errs[2], "rank 1")
	})
}

// engine is the configuration of a rank's engine.
func (b *bed) engine(t *testing.T) *efa.Config {
	c := &efa.Config{Logger: quiet}
	if b.Network != nil {
		c.Device = b.Open(t)
	} else {
		c.Providers, c.Require = []string{b.Provider}, true
	}
	return c
}

// A device that would match wrongly is refused, and so is a mode that there is not.
func TestDeviceThatCannotMatch(t *testing.T) {
	device, err := fabrictest.NewNetwork(fabrictest.Faults{}).Open(fabrictest.DeviceConfig{MasksMissWaiting: true})
	require.NoError(t, err)
	exchange := func(context.Context, string, []byte) ([][]byte, error) { return nil, errors.New("not reached") }
	config := Config{Size: 2, Exchange: exchange, Matching: MatchByProvider, Logger: quiet, Engine: &efa.Config{Device: device}}
	_, err = Open(deadline(t), config)
	var cannot *MatchingError
	require.ErrorAs(t, err, &cannot)
	require.ErrorIs(t, err, fabric.ErrNotSupported)
	require.ErrorContains(t, err, "mask")

	var wrong *ConfigError
	_, err = Open(deadline(t), Config{Size: 1, Matching: 7})
	require.ErrorAs(t, err, &wrong)
	require.ErrorContains(t, err, "Config.Matching: 7")
	_, err = Open(deadline(t), Config{Size: 1, HandedDown: -1})
	require.ErrorAs(t, err, &wrong)
}

// More receives than the device is given, of which the earliest matching one gets each
// message, while they come in an order of their own.
func TestOverflow(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		worlds := b.open(t, 2, Config{HandedDown: 4}, efa.Config{})
		zero, one := worlds[0], worlds[1]
		const count = 100
		var requests []*Request
		bufs := make([][]byte, count)
		for i := range count {
			bufs[i] = make([]byte, 8)
			requests = append(requests, irecv(t, one, bufs[i], []int{0, AnySource}[i%2], i%10))
		}
		one.engine.do(func(efa.Progress) {
			check(t, one.engine.provider.count == 4, "%d are handed down", one.engine.provider.count)
		})
		require.Equal(t, count, posted(one))
		// Those with a high tag first, which are not handed down.
		for i := count - 1; i >= 0; i-- {
			require.NoError(t, zero.Send(deadline(t), content(0, i, 8), 1, i%10))
		}
		for i, q := range requests {
			require.Equal(t, Status{Source: 0, Tag: i % 10, Length: 8}, finish(t, q))
			// The i/10-th of its tag.
			require.Equal(t, content(0, count-10+i%10-i/10*10, 8), bufs[i])
		}
		require.Zero(t, posted(one))
	})
}

// Receives are posted, some exact and some for anything, while messages stream in and
// probes bring them up: of each sender they come in order, each once.
func TestReceivesAmidMessages(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		worlds := b.open(t, 3, Config{HandedDown: 8}, efa.Config{})
		zero := worlds[0]
		count := 600
		if !b.fast() {
			count = 200
		}
		var senders sync.WaitGroup
		for _, c := range worlds[1:] {
			senders.Go(func() {
				for i := range count {
					send := c.Send
					if i%16 == 7 {
						send = c.Ssend
					}
					if !check(t, send(deadline(t), content(c.Rank(), i, 4+i%40), 0, 1) == nil, "send") {
						return
					}
				}
			})
		}
		next := [3]int{}
		buf := make([][]byte, 3)
		for received := 0; received < 2*count; {
			sources := []int{AnySource, AnySource, AnySource}
			if next[1] < count-3 && received%5 == 0 {
				sources[received/5%3] = 1
			}
			sources = sources[:min(3, 2*count-received)]
			requests := make([]*Request, len(sources))
			for i, source := range sources {
				buf[i] = make([]byte, 44)
				requests[i] = irecv(t, zero, buf[i], source, []int{1, AnyTag}[(received+i)%2])
				if (received+i)%3 == 0 {
					_, _, err := zero.Iprobe(AnySource, AnyTag)
					require.NoError(t, err)
				}
			}
			// Those of one sender, by the order of the receives that took them.
			for i, q := range requests {
				status := finish(t, q)
				require.Equal(t, content(status.Source, next[status.Source], 4+next[status.Source]%40), buf[i][:status.Length])
				next[status.Source]++
				received++
			}
		}
		require.Equal(t, [3]int{0, count, count}, next)
		senders.Wait()
		require.Equal(t, [4]int{}, left(zero))
	})
}

// Cancels race with messages: a receive ends once, with a message or as canceled, and no
// message is lost or comes twice.
func TestCancelAmidMessages(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		zero, one, _ := b.pair(t)
		count := 400
		if !b.fast() {
			count = 100
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for i := range count {
				if !check(t, zero.Send(deadline(t), content(0, i, 8), 1, 1) == nil, "send") {
					return
				}
			}
		}()
		next, canceled := 0, 0
		for next < count {
			var requests [4]*Request
			var bufs [4][]byte
			for i := range requests {
				bufs[i] = make([]byte, 8)
				requests[i] = irecv(t, one, bufs[i], []int{0, AnySource}[i%2], 1)
			}
			for _, i := range []int{2, 3, 0, 1} {
				requests[i].Cancel()
			}
			for i, q := range requests {
				_, err := q.Wait(deadline(t))
				if errors.Is(err, ErrCanceled) {
					canceled++
					continue
				}
				require.NoError(t, err)
				require.Equal(t, content(0, next, 8), bufs[i])
				next++
			}
		}
		<-sent
		require.Equal(t, count, next)
		require.Equal(t, [4]int{}, left(one), "%d were canceled", canceled)
	})
}

// A message to oneself finds its receive with the provider, while messages of another
// rank come for the same: each receive has one message, in order of each sender.
func TestOwnMessageAmidOthers(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		zero, one, limit := b.pair(t)
		for _, size := range []int{8, limit + 100} {
			// Nobody else is there.
			buf := make([]byte, size)
			q := irecv(t, zero, buf, AnySource, 3)
			isend(t, zero, content(0, 1, size), 0, 3)
			require.Equal(t, Status{Source: 0, Tag: 3, Length: size}, finish(t, q))
			require.Equal(t, content(0, 1, size), buf)
		}
		const count = 60
		var sending sync.WaitGroup
		for _, c := range []*Comm{zero, one} {
			sending.Go(func() {
				for i := range count {
					if !check(t, c.Send(deadline(t), content(c.Rank(), i, 8), 0, i%3) == nil, "send") {
						return
					}
				}
			})
		}
		next := [2][3]int{}
		for done := 0; done < 2*count; {
			n := min(5, 2*count-done)
			var bufs [5][]byte
			var requests [5]*Request
			for i := range n {
				bufs[i] = make([]byte, 8)
				requests[i] = irecv(t, zero, bufs[i], AnySource, AnyTag)
			}
			for i, q := range requests[:n] {
				status := finish(t, q)
				number := next[status.Source][status.Tag]*3 + status.Tag
				require.Equal(t, content(status.Source, number, 8), bufs[i])
				next[status.Source][status.Tag]++
				done++
			}
		}
		sending.Wait()
		require.Equal(t, [4]int{}, left(zero))
	})
}

// A send to oneself that waits for a receive to come back cannot be canceled; one behind
// it can.
func TestCancelOfOwnMessages(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		zero, _, _ := b.pair(t)
		q := irecv(t, zero, make([]byte, 8), AnySource, 3)
		var first, second *Request
		zero.engine.do(func(p efa.Progress) {
			// Both begin before the device has a turn.
			begin := func(i int) *Request {
				op, err := zero.newSend(content(0, i, 8), 0, 3, true)
				check(t, err == nil, "%v", err)
				op.work = workNone
				op.send(p)
				return (*Request)(op)
			}
			first, second = begin(1), begin(2)
			first.operation().cancel(p, ErrCanceled)
			second.operation().cancel(p, ErrCanceled)
			check(t, !first.operation().done.Load() && second.operation().done.Load(), "which is canceled")
		})
		require.Equal(t, Status{Source: 0, Tag: 3, Length: 8}, finish(t, q))
		settled(t, zero)
		require.True(t, first.operation().done.Load())
		require.NoError(t, first.operation().err)
		require.ErrorIs(t, second.operation().err, ErrCanceled)
	})
}

// A sender without credit waits, in order, and what waits can be canceled. The receiver
// has brought up what it has memory for; what it receives makes room.
func TestCreditComesBack(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		const length = 1000
		worlds := b.open(t, 2, Config{MaxUnexpected: 20_000}, efa.Config{EagerLimit: 2048})
		zero, one := worlds[0], worlds[1]
		var requests []*Request
		const count = 100
		for i := range count {
			q, err := zero.Isend(content(0, i, length), 1, i%3)
			require.NoError(t, err)
			requests = append(requests, q)
		}
		require.Eventually(t, func() bool { _, _, full := used(one); return full }, patience, time.Millisecond)
		bytes, messages, _ := used(one)
		require.Less(t, bytes, int64(20_000+length+overhead))
		// It is held back: memory here, and as much with the provider.
		var waiting, outstanding int
		zero.engine.do(func(efa.Progress) {
			to := zero.engine.peers[1]
			for op := to.sending.head; op != nil; op = op.next {
				waiting++
			}
			outstanding = int(to.sent.messages - to.credited.messages)
			check(t, to.sent.bytes-to.credited.bytes <= to.limit.bytes, "bytes under way")
		})
		require.Positive(t, waiting)
		require.LessOrEqual(t, messages, 20)
		require.LessOrEqual(t, outstanding, 20+1)
		last := requests[count-1]
		last.Cancel()
		_, err := last.Wait(deadline(t))
		require.ErrorIs(t, err, ErrCanceled)
		for i := range count - 1 {
			expect(t, one, 0, AnyTag, Status{Source: 0, Tag: i % 3, Length: length}, i)
		}
		require.NoError(t, WaitAll(deadline(t), requests[:count-1]))
		require.Equal(t, [4]int{}, left(one))
	})
}

// A receive for the last of many messages gets it, although the provider holds more than
// a sender has credit for before it.
func TestLastOfManyFirst(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		zero, one, _ := b.pair(t)
		const count = 3 * mostOutstanding
		buf := make([]byte, 8)
		q := irecv(t, one, buf, 0, count)
		for i := range count {
			isend(t, zero, content(0, i, 8), 1, i)
		}
		isend(t, zero, content(0, count, 8), 1, count)
		require.Equal(t, Status{Source: 0, Tag: count, Length: 8}, finish(t, q))
		for i := count - 1; i >= 0; i-- {
			expect(t, one, 0, i, Status{Source: 0, Tag: i, Length: 8}, i)
		}
	})
}

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

// Communicators have contexts of 14 bits. When a rank has none left, all of them are told
// so, and what there is goes on.
func TestContextsRunOut(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		worlds := b.open(t, 3, Config{}, efa.Config{})
		worlds[1].engine.contexts.Store(tagged.MaxMatchedContext/2 - 1)
		last := twins(t, worlds)
		require.EqualValues(t, tagged.MaxMatchedContext-1, last[1].context)
		onAll(worlds, func(rank int, c *Comm) {
			_, err := c.Dup(deadline(t))
			var none *ContextError
			check(t, errors.As(err, &none) && none.Limit == 8191, "rank %d: %v", rank, err)
		})
		isend(t, last[0], content(0, 1, 8), 1, MaxTag)
		expect(t, last[1], 0, AnyTag, Status{Source: 0, Tag: MaxTag, Length: 8}, 1)
		barrierOf(t, last)
	})
}

func barrierOf(t *testing.T, worlds []*Comm) {
	t.Helper()
	onAll(worlds, func(_ int, c *Comm) { barrier(t, c) })
}

// A rank that does not answer keeps Close waiting for no longer than its time, and Close
// says which it is.
func TestCloseGivesUp(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Name != "fake" && b.Provider != "tcp" {
			return
		}
		worlds := b.openFor(t, 3, Config{CloseTimeout: 100 * time.Millisecond}, efa.Config{})
		held, release := make(chan struct{}), make(chan struct{})
		go worlds[1].engine.do(func(efa.Progress) {
			close(held)
			<-release
		})
		<-held
		for rank := range 3 {
			require.NoError(t, worlds[0].Send(deadline(t), nil, rank, 0))
		}
		err := worlds[0].Close()
		close(release)
		var lost *RankError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, 1, lost.Rank)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	})
}

// A rank is lost that was held back: what had come of it is received, in order, although
// there was no memory left to bring it up. The others have their credit back.
func TestLostRankWasHeldBack(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		worlds := b.openFor(t, 3, Config{MaxUnexpected: 20_000}, efa.Config{EagerLimit: 2048})
		zero, one, two := worlds[0], worlds[1], worlds[2]
		for i := range 50 {
			_, err := one.Isend(content(1, i, 1000), 0, 1)
			require.NoError(t, err)
		}
		require.Eventually(t, func() bool { _, _, full := used(zero); return full }, patience, time.Millisecond)
		_, least, _ := used(zero)
		for i := range 50 {
			isend(t, two, content(2, i, 1000), 0, 2)
		}
		cut(t, one)
		_, err := zero.Recv(deadline(t), nil, 1, 3)
		requireRankLost(t, err, 1)
		received := 0
		for ; ; received++ {
			buf := make([]byte, 1000)
			if _, err = zero.Recv(deadline(t), buf, 1, 1); err != nil {
				break
			}
			require.Equal(t, content(1, received, 1000), buf)
		}
		requireRankLost(t, err, 1)
		require.GreaterOrEqual(t, received, least)
		for i := range 50 {
			expect(t, zero, 2, 2, Status{Source: 2, Tag: 2, Length: 1000}, i)
		}
	})
}

// A rank that closes first has delivered everything, although nobody has looked for it:
// it is received later.
func TestCloseBringsEverything(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		worlds := b.openFor(t, 3, Config{MaxUnexpected: 50_000}, efa.Config{EagerLimit: 2048})
		zero, one, two := worlds[0], worlds[1], worlds[2]
		const count = 20
		for i := range count {
			require.NoError(t, zero.Send(deadline(t), content(0, i, 1000), 1, i))
		}
		// What it was sent itself, and does not want, is no hindrance.
		for i := range count {
			require.NoError(t, one.Send(deadline(t), content(1, i, 1000), 0, i))
		}
		require.NoError(t, zero.Close())
		for _, i := range slices.Backward([]int{0, 3, 7, count - 1}) {
			expect(t, one, 0, i, Status{Source: 0, Tag: i, Length: 1000}, i)
		}
		isend(t, two, content(2, 1, 8), 1, 0)
		expect(t, one, 2, 0, Status{Source: 2, Tag: 0, Length: 8}, 1)
		var lost *RankError
		require.Eventually(t, func() bool {
			return errors.As(one.Send(deadline(t), nil, 0, 0), &lost)
		}, patience, time.Millisecond)
		closeAll(t, worlds[1:])
	})
}
