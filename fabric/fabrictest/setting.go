package fabrictest

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// Setting is one kind of device to run a test on.
type Setting struct {
	Name     string
	Provider string // empty: devices in memory
	Faults   Faults
	Device   DeviceConfig
	// Rails is how many devices each engine has, if its config does not say; 0 is one.
	Rails int
}

// Settings are those that everything above devices is tested in: devices in memory,
// without faults and with them, then those of more, and each provider to test on.
func Settings(more ...Setting) []Setting {
	inMemory := []Setting{
		{Name: "fake"},
		{Name: "fake-faults", Faults: Faults{Reorder: 0.6, Refuse: 0.3, Delay: 3}},
		{Name: "fake-registered", Faults: Faults{Reorder: 0.3, RefuseEveryOther: true}, Device: DeviceConfig{NeedsRegistration: true, MaxInject: 16}},
	}
	return slices.Concat(inMemory, more, OnProviders())
}

// OnProviders has a setting for each provider to test on.
func OnProviders() (settings []Setting) {
	for _, provider := range testenv.Providers() {
		settings = append(settings, Setting{Name: provider, Provider: provider})
	}
	return settings
}

// Bed is a setting at work. What is opened on one reaches what else is.
type Bed struct {
	Setting
	Network *Network // of the devices in memory, nil for a provider
}

// NewBed skips the test where there is no such device. The seed of the network is
// logged if the test fails.
func NewBed(t testing.TB, s Setting) *Bed {
	t.Helper()
	if s.Provider != "" {
		_, err := fabric.Choose(fabric.Preference{
			Providers: []string{s.Provider}, Source: "127.0.0.1", Logger: slog.New(slog.DiscardHandler),
		})
		testenv.Need(t, s.Provider, err)
		return &Bed{Setting: s}
	}
	b := &Bed{s, NewNetwork(s.Faults)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", b.Network.Seed())
		}
	})
	return b
}

// Open opens a device in memory.
func (b *Bed) Open(t testing.TB) *Device {
	t.Helper()
	device, err := b.Network.Open(b.Device)
	if err != nil {
		t.Fatal(err)
	}
	return device
}
