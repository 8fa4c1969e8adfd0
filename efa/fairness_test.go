package efa

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// counter counts the messages of a connection where they come.
type counter struct {
	took func()
}

func (c counter) Message(Progress, []byte) bool         { c.took(); return true }
func (c counter) Payload(_ Progress, length int) []byte { return make([]byte, length) }
func (c counter) Received(_ Progress, _ []byte, err error) {
	if err == nil {
		c.took()
	}
}
func (c counter) Ended(Progress, error) {}

// Of eight connections of a reactor one has far more to send than the others: when the
// slowest of these is through, it has had at least 0.8 of an even share. That is so of the
// middle one of three floods: other programs may take the core from one side in the middle
// of one, and what the other does meanwhile is no share.
func TestFloodLeavesOthersTheirShare(t *testing.T) {
	const floods = 3
	each(t, func(t *testing.T, b *bed) {
		var shares [floods]float64
		for i := range shares {
			shares[i] = shareBesideFlood(t, b)
		}
		slices.Sort(shares[:])
		require.GreaterOrEqual(t, shares[floods/2], 0.8, "of all: %v", shares)
	})
}

// shareBesideFlood is what the slowest of the others has had when it is through, of an even
// share.
func shareBesideFlood(t *testing.T, b *bed) float64 {
	t.Helper()
	const (
		connections = 8
		share       = 500
		flood       = 3000
	)
	// Of few windows each, one more or less would be a good part of a share.
	from, to := b.open(t, Config{WindowMessages: 32}), b.open(t, Config{WindowMessages: 32})
	var dialed, accepted [connections]*Conn
	for i := range connections {
		dialed[i], accepted[i] = join(t, from, to)
	}
	for i, c := range dialed {
		count := share
		if i == 0 {
			count = flood
		}
		// As many go as there is credit for, since nobody reads; the rest waits.
		for k := range count {
			require.NoError(t, c.WriteMessageAsync(message(i, k, 8), nil))
		}
	}
	var taken [connections]int
	behind := connections - 1 // that have not had theirs
	through, all := make(chan int, 1), make(chan struct{})
	to.do(func() {
		for i, c := range accepted {
			c.handler = counter{func() {
				taken[i]++
				if i > 0 && taken[i] == share {
					if behind--; behind == 0 {
						through <- taken[0]
					}
				}
				if taken[0] == flood && behind == 0 {
					close(all)
				}
			}}
			to.pump(c)
		}
	})
	ctx := deadline(t)
	flooded := 0
	select {
	case flooded = <-through:
	case <-ctx.Done():
		require.FailNow(t, "some messages have not come")
	}
	select {
	case <-all:
	case <-ctx.Done():
		require.FailNow(t, "some messages of the flood have not come")
	}
	for i := range connections {
		closeBoth(t, dialed[i], accepted[i])
	}
	return share / (float64(flooded+(connections-1)*share) / connections)
}
