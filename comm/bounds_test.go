package comm

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// used is what this rank's messages take that wait for a receive.
func used(c *Comm) (bytes int64, messages int, full bool) {
	c.engine.do(func(efa.Progress) {
		bytes, messages, full = c.engine.arrivals.used, c.engine.matcher.Unexpected(), c.engine.arrivals.full
	})
	return bytes, messages, full
}

// soakFlood is how many messages a flood of make soak-flood has, 0 for none.
func soakFlood(t *testing.T) (count int) {
	t.Helper()
	if text := os.Getenv("SOAK_FLOOD"); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	return count
}

// floodDeadline is the deadline of a test with a flood of so many messages.
func floodDeadline(t *testing.T, count int) context.Context {
	const each = time.Millisecond // far beyond what one takes
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(count)*each)
	t.Cleanup(cancel)
	return ctx
}

// Messages that nobody receives stay within their memory, senders are held back, and
// nothing is lost or out of order.
func TestUnexpectedIsBounded(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		const limit = 100_000
		count := 5_000
		if b.matching == MatchByProvider && !b.fast() {
			// Each of them is brought up by a receive of its own.
			count = 1_000
		}
		if soak := soakFlood(t); soak > 0 {
			// There are two senders.
			count = (soak + 1) / 2
		}
		worlds := b.open(t, 3, Config{MaxUnexpected: limit}, efa.Config{})
		ctx := floodDeadline(t, 2*count)
		sent := make(chan int, 2)
		for rank := 1; rank < 3; rank++ {
			go func() {
				for i := range count {
					if !check(t, worlds[rank].Send(ctx, content(rank, i, i%50), 0, i%7) == nil, "send %d of %d", i, rank) {
						break
					}
				}
				sent <- rank
			}()
		}
		zero := worlds[0]
		require.Eventually(t, func() bool { _, _, full := used(zero); return full }, patience, time.Millisecond)
		bytes, messages, _ := used(zero)
		// What goes beyond it is the one message that filled it.
		require.LessOrEqual(t, bytes, int64(limit+overhead+50))
		require.Equal(t, bytes >= limit, true)
		require.Less(t, messages, limit/overhead+1)
		next := map[int]int{}
		buf := make([]byte, 50)
		for range 2 * count {
			status, err := zero.Recv(ctx, buf, AnySource, AnyTag)
			require.NoError(t, err)
			i := next[status.Source]
			next[status.Source]++
			require.Equal(t, i%7, status.Tag)
			require.Equal(t, content(status.Source, i, i%50), append([]byte{}, buf[:status.Length]...))
			bytes, _, _ := used(zero)
			require.LessOrEqual(t, bytes, int64(limit+overhead+50))
		}
		<-sent
		<-sent
		bytes, messages, full := used(zero)
		require.Zero(t, bytes)
		require.Zero(t, messages)
		require.False(t, full)
	})
}

// Many requests at once, eager and not.
func TestManyIsends(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, limit := b.pair(t)
		count := 2000
		if testing.Short() {
			count = 500
		}
		var requests []Request
		size := func(i int) int {
			if i%10 == 0 {
				return limit + i
			}
			return i % 300
		}
		for i := range count {
			q, err := zero.Isend(content(0, i, size(i)), 1, i%3)
			require.NoError(t, err)
			requests = append(requests, q)
		}
		for i := range count {
			expect(t, one, 0, AnyTag, Status{Source: 0, Tag: i % 3, Length: size(i)}, i)
		}
		require.NoError(t, WaitAll(deadline(t), requests))
		require.Empty(t, one.engine.receives.live())
		require.Empty(t, zero.engine.sends.live())
	})
}
