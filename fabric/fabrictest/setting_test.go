package fabrictest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
)

// Every setting has a name of its own, and what it says about the device.
func TestSettings(t *testing.T) {
	t.Setenv(testenv.Only, "sockets")
	narrow := Setting{Name: "narrow", Device: DeviceConfig{MaxOperations: 8}}
	settings := Settings(narrow)
	var names []string
	for _, s := range settings {
		names = append(names, s.Name)
		t.Run(s.Name, func(t *testing.T) {
			b := NewBed(t, s)
			require.Equal(t, s, b.Setting)
			if s.Provider != "" {
				require.Nil(t, b.Network)
				return
			}
			d := b.Open(t)
			require.Equal(t, s.Device.NeedsRegistration, d.Attributes().NeedsRegistration)
			if s.Device.MaxOperations > 0 {
				require.EqualValues(t, s.Device.MaxOperations, d.Attributes().MaxOperations)
			}
			require.NoError(t, d.Close())
		})
	}
	require.Equal(t, []string{"fake", "fake-faults", "fake-registered", "narrow", "sockets"}, names)
}
