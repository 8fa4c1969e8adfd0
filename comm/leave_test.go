package comm

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

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
