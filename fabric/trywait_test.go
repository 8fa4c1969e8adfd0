package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Whether it is safe to block on a descriptor can be asked of queues that have one; shm
// looked into a wait object that was not there.
func TestTryWaitWithoutDescriptor(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, _ := stations(t, provider, fabric.TaggedMessages)
		ok, err := a.q.TryWait()
		if a.q.WaitDescriptor() < 0 {
			require.ErrorIs(t, err, fabric.ErrNotSupported)
			return
		}
		require.NoError(t, err)
		require.True(t, ok, "nothing is there to read")
	})
}

// Event queues can be asked in any case.
func TestTryWaitForEvents(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		c := openCorner(t, datagramsFor(t, provider, fabric.TaggedMessages))
		_, err := c.events.TryWait()
		if c.events.WaitDescriptor() < 0 {
			require.ErrorIs(t, err, fabric.ErrNotSupported)
			return
		}
		require.NoError(t, err)
	})
}

// The descriptor of a queue that is closed may be another file's.
func TestWaitDescriptorAfterClose(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		c := openCorner(t, datagramsFor(t, provider, fabric.TaggedMessages))
		q, err := c.domain.OpenCompletionQueue(8)
		require.NoError(t, err)
		events := eventsOf(t, c.fabric)
		require.NoError(t, q.Close())
		require.NoError(t, events.Close())
		require.Equal(t, -1, q.WaitDescriptor())
		require.Equal(t, -1, events.WaitDescriptor())
	})
}
