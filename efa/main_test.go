package efa

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weft-go/weft/fabric/fabrictest"
)

func TestMain(m *testing.M) {
	playRole()
	fabrictest.Main(m)
}

// patience is far beyond what any test needs on a slow machine.
const patience = 60 * time.Second

var quiet = slog.New(slog.DiscardHandler)

type setting = fabrictest.Setting

var settings = fabrictest.Settings(
	setting{Name: "fake-narrow", Device: fabrictest.DeviceConfig{MaxOperations: 8, UnexpectedLimit: 16, MasksMissWaiting: true}},
	setting{Name: "fake-naps", Faults: fabrictest.Faults{Reorder: 0.3, Refuse: 0.3, Delay: 2}, Device: fabrictest.DeviceConfig{Spin: true, Naps: true}},
	setting{Name: "fake-rails", Rails: 3, Faults: fabrictest.Faults{Reorder: 0.3, Refuse: 0.1, Delay: 3}, Device: fabrictest.DeviceConfig{MaxOperations: 64}},
)

// bed is a device setting at work: it opens reactors that reach each other.
type bed struct{ *fabrictest.Bed }

// each runs a test in every setting.
func each(t *testing.T, test func(t *testing.T, b *bed)) {
	for _, s := range settings {
		t.Run(s.Name, func(t *testing.T) { test(t, newBed(t, s)) })
	}
}

func newBed(t *testing.T, s setting) *bed {
	t.Helper()
	b := &bed{fabrictest.NewBed(t, s)}
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	return b
}

// testsEagerLimit is for tests that do not say another one: their messages of 5000 bytes and
// more have a payload message.
const testsEagerLimit = 4096

func (b *bed) open(t *testing.T, config Config) *Reactor {
	t.Helper()
	config.Logger = quiet
	config.EagerLimit = cmp.Or(config.EagerLimit, testsEagerLimit)
	if config.Rails == 0 {
		config.Rails, config.railPiece = b.Rails, 3000
	}
	if b.Network != nil {
		config.Device = b.Open(t)
		for range config.Rails - 1 {
			config.RailDevices = append(config.RailDevices, b.Open(t))
		}
	} else {
		config.Providers, config.Require = []string{b.Provider}, true
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
// requireLetGo waits until the device serves no connection of these reactors any more.
// It may be later than the end of Close: what a peer has confirmed the device gives
// back when it has the peer's acknowledgement too, and that packet may be lost.
func requireLetGo(t *testing.T, reactors ...*Reactor) {
	t.Helper()
	for _, r := range reactors {
		require.Eventually(t, func() bool { return r.Stats().Connections == 0 }, patience, time.Millisecond)
	}
}

func closeBoth(t *testing.T, a, b *Conn) {
	t.Helper()
	closed := make(chan error)
	go func() { closed <- a.Close() }()
	require.NoError(t, b.Close())
	require.NoError(t, <-closed)
}
