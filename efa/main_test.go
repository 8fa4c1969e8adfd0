package efa

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testenv"
)

func TestMain(m *testing.M) {
	playRole()
	fabrictest.Main(m)
}

// patience is far beyond what any test needs on a slow machine.
const patience = 60 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// setting is one kind of device to run a test on.
type setting struct {
	name     string
	provider string // empty: the device in memory
	faults   fabrictest.Faults
	device   fabrictest.DeviceConfig
}

var settings = append([]setting{
	{name: "fake"},
	{name: "fake-faults", faults: fabrictest.Faults{Reorder: 0.6, Refuse: 0.3, Delay: 3}},
	{name: "fake-registered", faults: fabrictest.Faults{Reorder: 0.3, RefuseEveryOther: true}, device: fabrictest.DeviceConfig{NeedsRegistration: true, MaxInject: 16}},
	{name: "fake-narrow", device: fabrictest.DeviceConfig{MaxOperations: 8, UnexpectedLimit: 16, MasksMissWaiting: true}},
}, onProviders()...)

func onProviders() (settings []setting) {
	for _, provider := range testenv.Providers() {
		settings = append(settings, setting{name: provider, provider: provider})
	}
	return settings
}

// bed is a device setting at work: it opens reactors that reach each other.
type bed struct {
	setting
	network *fabrictest.Network
}

// each runs a test in every setting.
func each(t *testing.T, test func(t *testing.T, b *bed)) {
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) { test(t, newBed(t, s)) })
	}
}

func newBed(t *testing.T, s setting) *bed {
	t.Helper()
	b := &bed{setting: s}
	if s.provider != "" {
		_, err := fabric.Choose(fabric.Preference{Providers: []string{s.provider}, Source: "127.0.0.1", Logger: quiet})
		testenv.Need(t, s.provider, err)
	} else {
		b.network = fabrictest.NewNetwork(s.faults)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("seed %d", b.network.Seed())
			}
		})
	}
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	return b
}

func (b *bed) open(t *testing.T, config Config) *Reactor {
	t.Helper()
	config.Logger = quiet
	if b.network != nil {
		device, err := b.network.Open(b.device)
		require.NoError(t, err)
		config.Device = device
	} else {
		config.Providers, config.Require = []string{b.provider}, true
	}
	c, err := config.withDefaults()
	require.NoError(t, err)
	r, err := open(c, "127.0.0.1")
	require.NoError(t, err)
	r.retain()
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// connect opens two reactors and a connection between them.
func (b *bed) connect(t *testing.T, config Config) (dialed, accepted *Conn) {
	t.Helper()
	return join(t, b.open(t, config), b.open(t, config))
}

// join makes a connection between two reactors.
func join(t *testing.T, from, to *Reactor) (dialed, accepted *Conn) {
	t.Helper()
	ctx := deadline(t)
	l, err := to.Listen(ctx, "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	dialed, err = from.Dial(ctx, l.Addr().String())
	require.NoError(t, err)
	accepted, err = l.AcceptConn(ctx)
	require.NoError(t, err)
	return dialed, accepted
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// message makes the content of message i of some sender, which tells where it
// belongs in every byte.
func message(sender, i, size int) []byte {
	rng := rand.New(rand.NewPCG(uint64(sender), uint64(i)))
	b := make([]byte, size)
	for j := 0; j < size; j += 8 {
		v := rng.Uint64()
		for k := j; k < min(j+8, size); k++ {
			b[k] = byte(v)
			v >>= 8
		}
	}
	return b
}

// closeBoth closes both ends as two programs would, at the same time.
func closeBoth(t *testing.T, a, b *Conn) {
	t.Helper()
	closed := make(chan error)
	go func() { closed <- a.Close() }()
	require.NoError(t, b.Close())
	require.NoError(t, <-closed)
}
