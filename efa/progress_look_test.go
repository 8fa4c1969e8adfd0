package efa

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Calls that do not look at the queue do not keep the background from looking.
func TestWhoDoesNotLookIsNotCounted(t *testing.T) {
	b := newBed(t, setting{Name: "shm", Provider: "shm"})
	dialed, accepted := b.connect(t, Config{})
	r := dialed.reactor
	require.True(t, r.attributes.Spin && !r.attributes.Notifies)
	const count = 3 * (mostUnread + 1)
	turns := r.callerTurns.Load()
	for i := range count {
		require.NoError(t, dialed.WriteMessage(deadline(t), message(1, i, 10)))
	}
	require.LessOrEqual(t, r.callerTurns.Load()-turns, uint64(count/(mostUnread+1)))
	// Nor do those who take what is here already.
	buf := make([]byte, 10)
	eventually(t, accepted.reactor, func() bool { return accepted.received == count })
	turns = accepted.reactor.callerTurns.Load()
	for range count {
		_, err := accepted.ReadMessage(deadline(t), buf)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, accepted.reactor.callerTurns.Load()-turns, uint64(count/(mostSkipped+1)+1))
	closeBoth(t, dialed, accepted)
}
