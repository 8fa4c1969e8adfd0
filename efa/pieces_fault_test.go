package efa

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/tagged"
)

// A piece that the device cannot be given ends the connection, and with it the
// write: those after the piece will not come either.
func TestPieceThatCannotBeSent(t *testing.T) {
	for _, at := range []int{2, 5, 20, 49, 50} {
		_, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{MaxMessage: 1000, NeedsRegistration: true})
		pieces := 0
		bad := &wrapped{Device: d1, refuseRegister: func(n int) bool {
			if n == 1000 {
				pieces++
			}
			return pieces == at
		}}
		dialed, accepted := join(t, openOn(t, bad, Config{}), openOn(t, d2, Config{}))
		q, err := dialed.Send(make([]byte, 50_000))
		require.NoError(t, err)
		require.ErrorIs(t, q.Wait(deadline(t)), ErrTransfer, "piece %d", at)
		var left int
		dialed.reactor.do(func() { left = dialed.writes.Len() })
		require.Zero(t, left)
		require.NoError(t, accepted.CloseNow())
		require.NoError(t, dialed.CloseNow())
	}
}

// A peer that asks for tiny pieces asks for as many operations as a message has bytes,
// which all have to be ended if it goes away in the middle.
func TestTinyPieces(t *testing.T) {
	_, d1, _ := twoDevices(t, fabrictest.DeviceConfig{})
	good := openOn(t, d1, Config{}).terms(nil)
	good.Connection = 1
	for piece, fits := range map[uint64]bool{0: false, 1: false, tiniestPiece - 1: false, tiniestPiece: true} {
		tiny := *good
		tiny.Piece = piece
		_, err := decodeTerms(tiny.encode())
		if fits {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrHandshake, "%d", piece)
		}
	}
}

// A peer that takes no more messages, in the middle of long ones, does not hold up
// those to others.
func TestPiecesForOneThatIsStuck(t *testing.T) {
	n, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{MaxMessage: 1000})
	d3, err := n.Open(fabrictest.DeviceConfig{MaxMessage: 1000})
	require.NoError(t, err)
	full := false
	var stuckAt fabric.Address
	firsts := 0
	from := openOn(t, &wrapped{Device: d1, refuse: func(op *fabric.Op) bool {
		if !full || op.Kind == fabric.OpTaggedReceive || op.Peer != stuckAt {
			return false
		}
		// The first pieces come with their lengths.
		if kind, _, _ := tagged.ParseTag(op.Tag); kind == tagged.KindPayload {
			firsts++
		}
		return firsts > 4
	}}, Config{})
	stuck, stuckEnd := join(t, from, openOn(t, d2, Config{}))
	good, goodEnd := join(t, from, openOn(t, d3, Config{}))
	from.do(func() {
		full, stuckAt = true, stuck.peer.address
		// All begin in one turn.
		for range 4 {
			k := newCall(stuck, make([]byte, 100_000))
			k.callback = func(error) {}
			startAsync(from, &k.request)
		}
	})
	eventually(t, from, func() bool { return firsts > 4 })
	for i := range 3 {
		written := make(chan error, 1)
		go func() { written <- good.WriteMessage(deadline(t), message(1, i, 50_000)) }()
		goodEnd.expect(t, 1, i, 1, 50_000)
		require.NoError(t, <-written)
	}
	from.do(func() { full = false })
	for range 4 {
		_, err := stuckEnd.ReadMessage(deadline(t), make([]byte, 100_000))
		require.NoError(t, err)
	}
	closeBoth(t, stuck, stuckEnd)
	closeBoth(t, good, goodEnd)
}

// A peer that stops, with long messages on their way to it, leaves room in the
// device for those to others.
func TestPiecesForOneThatStopped(t *testing.T) {
	n, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{MaxMessage: 1000, MaxOperations: 512})
	d3, err := n.Open(fabrictest.DeviceConfig{MaxMessage: 1000})
	require.NoError(t, err)
	from, to := openOn(t, d1, Config{}), openOn(t, d2, Config{})
	stopped, stoppedEnd := join(t, from, to)
	good, goodEnd := join(t, from, openOn(t, d3, Config{}))
	goOn := make(chan struct{})
	halted := make(chan struct{})
	go to.do(func() { close(halted); <-goOn })
	<-halted
	const count = 40
	done := NewCompletion(count, func(error) {})
	for range count {
		require.NoError(t, stopped.SendZeroCopy(make([]byte, 50_000), done))
	}
	for i := range 3 {
		written := make(chan error, 1)
		go func() { written <- good.WriteMessage(deadline(t), message(1, i, 50_000)) }()
		goodEnd.expect(t, 1, i, 1, 50_000)
		require.NoError(t, <-written)
	}
	close(goOn)
	for range count {
		_, err := stoppedEnd.ReadMessage(deadline(t), make([]byte, 50_000))
		require.NoError(t, err)
	}
	require.NoError(t, stopped.Flush(deadline(t), FlushRemote))
	eventually(t, from, func() bool { return from.sendRoom == 512/8 })
	closeBoth(t, stopped, stoppedEnd)
	closeBoth(t, good, goodEnd)
}
