package fabrictest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestWakeEndsTheNextWait(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	d[0].Wake()
	d[0].Wait(patience)
	require.True(t, d[0].Arm())
}

// waitIn starts a Wait, and returns once it blocks. The channel is closed when
// it has returned.
func waitIn(t *testing.T, d *Device) <-chan struct{} {
	t.Helper()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		d.Wait(patience)
	}()
	require.Eventually(t, func() bool {
		d.network.mu.Lock()
		defer d.network.mu.Unlock()
		return d.waiting
	}, patience/2, time.Millisecond)
	return returned
}

func requireDone(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience / 2):
		t.Fatal("Wait did not return")
	}
}

func TestWaitEnds(t *testing.T) {
	for name, end := range map[string]func(n *Network, a, b node){
		"by Wake":              func(n *Network, a, b node) { a.Wake() },
		"by a message":         func(n *Network, a, b node) { b.post(send(0, 1, "x")) },
		"by a device's error":  func(n *Network, a, b node) { n.RaiseError(a.Device, fabric.ErrNotFound) },
		"by Close of itself":   func(n *Network, a, b node) { require.NoError(a.t, a.Close()) },
		"by Kill of itself":    func(n *Network, a, b node) { n.Kill(a.Device) },
		"by Cancel":            func(n *Network, a, b node) { require.NoError(a.t, a.Cancel(a.slots[0].token())) },
		"by the end of a peer": func(n *Network, a, b node) { n.Kill(b.Device) },
		"by its message's end": func(n *Network, a, b node) { b.turn() },
		"by a held one's end": func(n *Network, a, b node) {
			n.HoldCompletions(a.Device)
			b.turn()
			n.StopHolding(a.Device)
		},
		"by Heal of its peer's": func(n *Network, a, b node) {
			n.Partition(a.Device, b.Device)
			b.post(send(0, 1, "x"))
			n.Heal(a.Device, b.Device)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := NewNetwork(Faults{})
			d := open(t, n, 2, DeviceConfig{})
			d[0].post(receive(1, 1, 0, 0, 1), send(1, 2, "x"))
			require.True(t, d[0].Arm())
			done := waitIn(t, d[0].Device)
			end(n, d[0], d[1])
			requireDone(t, done)
		})
	}
}

func TestWaitDoesNotBlockWithSomethingToRead(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	d[1].post(send(0, 1, "x"))
	require.False(t, d[0].Arm())
	d[0].Wait(patience)
	d[0].post(receive(1, 1, 0, 0, 1))
	require.False(t, d[0].Arm(), "a completion is there")
	d[0].Wait(patience)
	d[0].one()
	require.True(t, d[0].Arm())
}

func TestWaitTimesOut(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	for _, timeout := range []time.Duration{-1, 0, 1} {
		d[0].Wait(timeout)
	}
	require.True(t, d[0].Arm())
}

func TestASecondWaitPanics(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	done := waitIn(t, d[0].Device)
	require.Panics(t, func() { d[0].Wait(patience) })
	d[0].Wake()
	requireDone(t, done)
}
