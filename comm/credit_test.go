package comm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// A sender without credit waits, in order, and what waits can be canceled. The receiver
// has brought up what it has memory for; what it receives makes room.
func TestCreditComesBack(t *testing.T) {
	byProvider(t, func(t *testing.T, b *bed) {
		const length = 1000
		worlds := b.open(t, 2, Config{MaxUnexpected: 20_000}, efa.Config{EagerLimit: 2048})
		zero, one := worlds[0], worlds[1]
		var requests []Request
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
