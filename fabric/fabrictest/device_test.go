package fabrictest

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestErrors(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 1, DeviceConfig{})
	require.NoError(t, d[0].Errors())
	n.RaiseError(d[0].Device, fabric.ErrNotFound)
	n.RaiseError(d[0].Device, fabric.ErrUnreachable)
	err := d[0].Errors()
	require.ErrorIs(t, err, fabric.ErrNotFound)
	require.ErrorIs(t, err, fabric.ErrUnreachable)
	require.NoError(t, d[0].Errors())
}

func TestAfterClose(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	token := d[0].post(receive(0, 1, 0, 0, 1))[0].Token
	require.NoError(t, d[0].Close())
	require.NoError(t, d[0].Close())

	ops := []fabric.Op{send(0, 1, "x")}
	_, err := d[0].Turn(ops, nil, 0)
	require.ErrorIs(t, err, net.ErrClosed)
	require.Equal(t, fabric.Failed, ops[0].Result)
	require.ErrorIs(t, ops[0].Err, net.ErrClosed)
	_, err = d[0].Insert(d[0].LocalAddress())
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = d[0].Register(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, d[0].Remove(0), net.ErrClosed)
	require.ErrorIs(t, d[0].Cancel(token), net.ErrClosed)
	require.ErrorIs(t, d[0].Errors(), net.ErrClosed)
	require.False(t, d[0].Arm())
	d[0].Wait(patience)
	d[0].Wake()
}

func TestASecondGoroutineInsidePanics(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = d[0].Turn(nil, make([]fabric.Completion, 1), 1<<40)
	}()
	require.Eventually(t, func() bool { return d[0].busy.Load() != nil }, patience, time.Millisecond)
	for name, use := range map[string]func(){
		"Turn":     func() { _, _ = d[0].Turn(nil, nil, 0) },
		"Insert":   func() { _, _ = d[0].Insert(nil) },
		"Remove":   func() { _ = d[0].Remove(0) },
		"Register": func() { _, _ = d[0].Register(nil) },
		"Cancel":   func() { _ = d[0].Cancel(0) },
		"Arm":      func() { d[0].Arm() },
		"Errors":   func() { _ = d[0].Errors() },
		"Close":    func() { _ = d[0].Close() },
	} {
		require.PanicsWithValue(t, "fabrictest: "+name+" of device "+d[0].address+" was called while another goroutine "+
			"was in Turn; only the holder of the progress role may use a device", use)
	}
	d[0].Wake() // for anyone
	d[0].network.Kill(d[0].Device)
	requireDone(t, done)
}
