package efa

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/tagged"
)

// recorded is a log for tests.
type recorded struct {
	least slog.Level
	with  []slog.Attr

	mu    *sync.Mutex
	lines *[]logged
}

type logged struct {
	level      slog.Level
	text       string
	attributes map[string]slog.Value
}

func newRecorded(least slog.Level) recorded {
	return recorded{least: least, mu: new(sync.Mutex), lines: new([]logged)}
}

func (r recorded) Enabled(_ context.Context, l slog.Level) bool { return l >= r.least }

func (r recorded) Handle(_ context.Context, entry slog.Record) error {
	l := logged{entry.Level, entry.Message, map[string]slog.Value{}}
	for _, a := range r.with {
		l.attributes[a.Key] = a.Value.Resolve()
	}
	entry.Attrs(func(a slog.Attr) bool {
		if _, twice := l.attributes[a.Key]; twice {
			return false
		}
		l.attributes[a.Key] = a.Value.Resolve()
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.lines = append(*r.lines, l)
	return nil
}

func (r recorded) WithAttrs(more []slog.Attr) slog.Handler {
	r.with = append(append([]slog.Attr{}, r.with...), more...)
	return r
}

func (r recorded) WithGroup(string) slog.Handler { panic("no groups are used") }

// all returns the lines with a text so far.
func (r recorded) all(text string) []logged {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []logged
	for _, l := range *r.lines {
		if l.text == "weft: "+text {
			found = append(found, l)
		}
	}
	return found
}

// await waits for lines with a text, and returns the last of so many.
func (r recorded) await(t *testing.T, text string, count int) logged {
	t.Helper()
	require.Eventually(t, func() bool { return len(r.all(text)) >= count }, patience, time.Millisecond, "%s", text)
	return r.all(text)[count-1]
}

// The life of a listener, of its reactor and of its connections.
func TestLogOfLife(t *testing.T) {
	log := newRecorded(slog.LevelDebug)
	n := fabrictest.NewNetwork(fabrictest.Faults{})
	d1, err := n.Open(fabrictest.DeviceConfig{})
	require.NoError(t, err)
	d2, err := n.Open(fabrictest.DeviceConfig{})
	require.NoError(t, err)
	l, err := Listen(deadline(t), "127.0.0.1:0", &Config{Device: d1, Logger: slog.New(log), MaxMessage: 12345})
	require.NoError(t, err)
	opened := log.await(t, "reactor opened", 1)
	require.Equal(t, slog.LevelInfo, opened.level)
	require.EqualValues(t, 12345, opened.attributes["max_message"].Int64())
	listening := log.await(t, "listening", 1)
	require.Equal(t, slog.LevelInfo, listening.level)
	require.Equal(t, l.Addr().String(), listening.attributes["address"].String())

	dialed, err := Dial(deadline(t), l.Addr().String(), &Config{Device: d2, Logger: quiet})
	require.NoError(t, err)
	accepted, err := l.AcceptConn(deadline(t))
	require.NoError(t, err)
	life := log.await(t, "connection opened", 1)
	require.Equal(t, slog.LevelDebug, life.level)
	require.Equal(t, dialed.LocalAddr().String(), life.attributes["peer"].String())
	require.NoError(t, dialed.WriteMessage(deadline(t), make([]byte, 10)))
	accepted.expectBytes(t, 10)
	closeBoth(t, dialed, accepted)
	end := log.await(t, "connection closed", 1)
	require.Equal(t, slog.LevelDebug, end.level)
	require.Equal(t, life.attributes["connection"], end.attributes["connection"])
	require.Equal(t, life.attributes["peer"].String(), end.attributes["peer"].String())
	require.NotContains(t, end.attributes, "error")
	require.Contains(t, end.attributes["stats"].Group(), slog.Uint64("received_bytes", 10))
	require.NoError(t, l.Close())
	require.Equal(t, slog.LevelInfo, log.await(t, "listener closed", 1).level)
	closed := log.await(t, "reactor closed", 1)
	require.Equal(t, slog.LevelInfo, closed.level)
	require.EqualValues(t, 1, closed.attributes["connections"].Uint64())
	require.Contains(t, closed.attributes["stats"].Group(), slog.Uint64("received", 1))

	// Consistently, and nothing about the message.
	for _, l := range *log.lines {
		require.Equal(t, "fake", l.attributes["provider"].String(), l.text)
		if strings.Contains(l.text, "connection") {
			require.Contains(t, l.attributes, "peer")
			require.Contains(t, l.attributes, "connection")
		}
	}
	require.Len(t, *log.lines, 6)
}

// expectBytes reads a message of that many bytes.
func (c *Conn) expectBytes(t *testing.T, size int) {
	t.Helper()
	n, err := c.ReadMessage(deadline(t), make([]byte, size))
	require.NoError(t, err)
	require.Equal(t, size, n)
}

// At level Info, connections and messages are silent.
func TestLogIsQuiet(t *testing.T) {
	log := newRecorded(slog.LevelInfo)
	n := fabrictest.NewNetwork(fabrictest.Faults{})
	d1, d2 := openLogged(t, n, log), openLogged(t, n, log)
	a, b := join(t, d1, d2)
	require.NoError(t, a.WriteMessage(deadline(t), make([]byte, 10)))
	b.expectBytes(t, 10)
	closeBoth(t, a, b)
	require.NoError(t, d1.Close())
	require.NoError(t, d2.Close())
	for _, l := range *log.lines {
		require.Equal(t, slog.LevelInfo, l.level)
		require.NotContains(t, l.text, "connection")
	}
	// Two reactors, and the listener of join.
	require.Len(t, *log.lines, 2+2+2)
}

func openLogged(t *testing.T, n *fabrictest.Network, log slog.Handler) *Reactor {
	t.Helper()
	d, err := n.Open(fabrictest.DeviceConfig{})
	require.NoError(t, err)
	r, err := Open(&Config{Device: d, Logger: slog.New(log)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// What peers do wrong is a warning, however often they do it not more than some.
func TestLogOfPeers(t *testing.T) {
	log := newRecorded(slog.LevelDebug)
	n := fabrictest.NewNetwork(fabrictest.Faults{})
	from, to := openLogged(t, n, slog.DiscardHandler), openLogged(t, n, log)
	const times = 5 * mostWarnings
	begin := time.Now()
	for range times {
		a, b := join(t, from, to)
		a.sendRaw(tagged.LengthTag(a.remoteID, 0), lengthOf(-1))
		_, err := b.ReadMessage(deadline(t), nil)
		require.ErrorIs(t, err, ErrProtocol)
		require.NoError(t, b.Close())
		require.NoError(t, a.CloseNow())
	}
	log.await(t, "connection closed", times)
	warnings := log.all("connection ended")
	require.NotEmpty(t, warnings)
	// In each second, begun ones included.
	require.LessOrEqual(t, len(warnings), mostWarnings*(int(time.Since(begin)/time.Second)+2))
	for _, l := range warnings {
		require.Equal(t, slog.LevelWarn, l.level)
		require.Contains(t, l.attributes, "peer")
		require.Contains(t, l.attributes, "connection")
		require.ErrorIs(t, l.attributes["error"].Any().(error), ErrProtocol)
	}
	require.EqualValues(t, times, to.Stats().Ended.Protocol)

	// A message for nobody.
	a, b := join(t, from, to)
	a.sendRaw(tagged.LengthTag(1<<30-1, 0), lengthOf(0))
	dropped := log.await(t, "message dropped", 1)
	require.Equal(t, slog.LevelDebug, dropped.level)
	require.Equal(t, tagged.LengthTag(1<<30-1, 0), dropped.attributes["tag"].Uint64())
	closeBoth(t, a, b)
}

// A device that fails is an error, once.
func TestLogOfDevice(t *testing.T) {
	log := newRecorded(slog.LevelWarn)
	n := fabrictest.NewNetwork(fabrictest.Faults{})
	d, err := n.Open(fabrictest.DeviceConfig{})
	require.NoError(t, err)
	r, err := Open(&Config{Device: d, Logger: slog.New(log)})
	require.NoError(t, err)
	a, b := join(t, openLogged(t, n, slog.DiscardHandler), r)
	failure := errors.New("the cable is out")
	n.RaiseError(d, failure)
	// It is not asked for errors every time.
	require.Eventually(t, func() bool { return r.Stats().Ended.Device == 1 }, patience, time.Millisecond)
	_, err = b.ReadMessage(deadline(t), nil)
	require.ErrorIs(t, err, failure)
	failed := log.await(t, "device failed", 1)
	require.Equal(t, slog.LevelError, failed.level)
	require.Equal(t, "fake", failed.attributes["provider"].String())
	require.ErrorIs(t, failed.attributes["error"].Any().(error), failure)
	require.EqualValues(t, 1, r.Stats().Ended.Device)
	require.EqualValues(t, 1, b.Stats().Errors.Device)
	_ = a.CloseNow()
	_ = b.Close()
	_ = r.Close()
	require.Len(t, *log.lines, 1)
}
