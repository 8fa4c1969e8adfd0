package comm

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/jobtest"
)

// closes counts how often a device was closed.
type closes struct {
	fabric.Device
	count int
}

func (d *closes) Close() error {
	d.count++
	return d.Device.Close()
}

// A Config that is refused has its devices closed as one that efa refuses has.
func TestRefusedConfigClosesDevices(t *testing.T) {
	b := fabrictest.NewBed(t, fabrictest.Settings()[0])
	device, rail := &closes{Device: b.Open(t)}, &closes{Device: b.Open(t)}
	_, err := Open(t.Context(), Config{Size: 0, Engine: &efa.Config{Device: device, RailDevices: []fabric.Device{rail}, Logger: quiet}})
	var wrong *ConfigError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, []int{1, 1}, []int{device.count, rail.count})
}

// An address that is anywhere would have the others dial themselves.
func TestAddressOfNoHost(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:7000"} {
		m := jobtest.NewMeeting(2)
		_, err := Open(t.Context(), Config{Size: 2, Exchange: m.Exchange(0), Address: address, Logger: quiet})
		var wrong *ConfigError
		require.ErrorAs(t, err, &wrong, address)
		require.Equal(t, "Address", wrong.Field)
	}
}

// Ranks that do not connect are named.
func TestOpenNamesWhoIsMissing(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Name != "fake" {
			return
		}
		c := b.config(t, Config{Size: 3}, efa.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		// The others have an address, and never dial.
		c.Exchange = func(_ context.Context, _ string, mine []byte) ([][]byte, error) {
			return [][]byte{mine, mine, mine}, nil
		}
		_, err := Open(ctx, c)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var missing *MissingError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, &MissingError{Rank: 0, Ranks: []int{1, 2}}, missing)
	})
}
