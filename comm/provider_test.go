package comm

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
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
		var requests []Request
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

// More receives than the device is given, of which the earliest matching one gets each
// message, while they come in an order of their own.
func TestOverflow(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		worlds := b.open(t, 2, Config{HandedDown: 4}, efa.Config{})
		zero, one := worlds[0], worlds[1]
		const count = 100
		var requests []Request
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
	each(t, func(t *testing.T, b *bed) {
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
			requests := make([]Request, len(sources))
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
	each(t, func(t *testing.T, b *bed) {
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
			var requests [4]Request
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
	each(t, func(t *testing.T, b *bed) {
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
			var requests [5]Request
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
		var first, second Request
		zero.engine.do(func(p efa.Progress) {
			// Both begin before the device has a turn.
			begin := func(i int) Request {
				op, err := zero.newSend(content(0, i, 8), 0, 3, true)
				check(t, err == nil, "%v", err)
				op.work = workNone
				op.send(p)
				return Request{op, op.served.Load()}
			}
			first, second = begin(1), begin(2)
			first.op.cancel(p, ErrCanceled)
			second.op.cancel(p, ErrCanceled)
			check(t, !first.op.done.Load() && second.op.done.Load(), "which is canceled")
		})
		require.Equal(t, Status{Source: 0, Tag: 3, Length: 8}, finish(t, q))
		settled(t, zero)
		require.True(t, first.op.done.Load())
		require.NoError(t, first.op.err)
		require.ErrorIs(t, second.op.err, ErrCanceled)
	})
}
