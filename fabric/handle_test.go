package fabric_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// What libfabric does not close yet, when its time has come, stays to be closed.
func TestReleaseIsTriedAgain(t *testing.T) {
	busy, calls := errors.New("busy"), 0
	release, remains, err := fabric.ClosedLate(func() error {
		if calls++; calls == 1 {
			return busy
		}
		return nil
	})
	require.NoError(t, err)
	require.Zero(t, calls)
	require.ErrorIs(t, release(), busy)
	require.Equal(t, 1, remains())
	require.NoError(t, release())
	require.Zero(t, remains())
	require.NoError(t, release())
	require.Equal(t, 2, calls)
}

// Close of an endpoint that fails when libfabric has closed it already can be called
// again.
func TestEndpointIsClosedOnce(t *testing.T) {
	members := groupsOf(t, 2)
	m := members[0]
	// It does not complete without the other.
	_, err := m.group.Barrier(0, 0)
	require.NoError(t, err)
	letGo := fabric.HoldGroup(m.group)
	require.ErrorIs(t, m.e.Close(), fabric.ErrBusy)
	require.NoError(t, letGo())
	require.NoError(t, m.e.Close())
}
