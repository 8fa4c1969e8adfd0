package collective

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/jobtest"
)

// A provider that cannot write to the memory of others is what every call names, and no
// Config.
func TestProviderThatCannotWrite(t *testing.T) {
	b := fabrictest.NewBed(t, fabrictest.Settings()[0])
	require.NotNil(t, b.Network, "the device in memory has no remote writes")
	m := jobtest.NewMeeting(2)
	worlds, errs := make([]*comm.Comm, 2), make([]error, 2)
	var all sync.WaitGroup
	for rank := range worlds {
		device := b.Open(t)
		all.Go(func() {
			worlds[rank], errs[rank] = comm.Open(t.Context(), comm.Config{Rank: rank, Size: 2, Exchange: m.Exchange(rank), Engine: &efa.Config{Device: device}})
		})
	}
	all.Wait()
	for rank, c := range worlds {
		require.NoError(t, errs[rank])
		err := Barrier(t.Context(), c)
		var wrong *ProviderError
		require.ErrorAs(t, err, &wrong)
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		require.ErrorIs(t, Configure(c, Config{}), fabric.ErrNotSupported)
	}
	for rank, c := range worlds {
		all.Go(func() { errs[rank] = c.Close() })
	}
	all.Wait()
	require.Equal(t, []error{nil, nil}, errs)
}
