package fabric_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// A queue is read on when one of its endpoints is closed, or the last.
func TestQueueBlocksAfterItsEndpoints(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := strewInfo(t, provider)
		f, d := partsOf(t, info)
		first := openStation(t, f, d, info)
		second := stationAt(t, f, d, info, first.q)
		var one [1]fabric.Completion
		wait := func() {
			t.Helper()
			for range 5 {
				n, err := first.q.ReadWait(one[:], 5)
				if errors.Is(err, fabric.ErrNotSupported) {
					testenv.Need(t, provider+" blocks", err)
				}
				require.NoError(t, err)
				require.Zero(t, n)
			}
		}
		wait()
		require.NoError(t, first.e.Close())
		wait()
		require.NoError(t, second.e.Close())
		wait()
	})
}
