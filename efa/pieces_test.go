package efa

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/tagged"
)

// narrow are devices that carry short messages only.
var narrow = []setting{
	{Name: "plain", Device: fabrictest.DeviceConfig{MaxMessage: 1000}},
	{Name: "faults", Faults: fabrictest.Faults{Reorder: 0.6, Refuse: 0.3, Delay: 3}, Device: fabrictest.DeviceConfig{MaxMessage: 1000}},
	{Name: "registered", Device: fabrictest.DeviceConfig{MaxMessage: 1000, NeedsRegistration: true, MaxOperations: 8, UnexpectedLimit: 8}},
}

// Messages that are longer than those of the device go in pieces.
func TestPieces(t *testing.T) {
	for _, s := range narrow {
		t.Run(s.Name, func(t *testing.T) {
			dialed, accepted := newBed(t, s).connect(t, Config{WindowBytes: 100_000})
			require.EqualValues(t, 1<<30, dialed.MaxMessage())
			sizes := []int{999, 1000, 1001, 0, 1999, 2000, 2001, 5, 50_000, 123_456, 300_000, 1}
			go func() {
				for i, size := range sizes {
					if err := dialed.WriteMessage(context.Background(), message(1, i, size)); err != nil {
						panic(err)
					}
				}
			}()
			for i, size := range sizes {
				accepted.expect(t, 1, i, 1, size)
			}
			closeBoth(t, dialed, accepted)
		})
	}
}

// Without the peer's consent a message is at most as long as the device's.
func TestNoPieces(t *testing.T) {
	dialed, accepted := newBed(t, narrow[0]).connect(t, Config{})
	var plain *Conn
	dialed.reactor.do(func() {
		terms := dialed.reactor.terms(nil)
		terms.Features, terms.Connection = 0, dialed.remoteID
		plain = dialed.reactor.newConn()
		plain.control = dialed.control
		plain.take(terms)
	})
	require.EqualValues(t, 1000, plain.maxMessage)
	require.False(t, plain.gathers)
	closeBoth(t, dialed, accepted)
}

// Pieces go out without waiting for the earlier ones, but not without a bound; and
// when the connection ends in the middle, nothing of them is left.
func TestPiecesAtOnce(t *testing.T) {
	b := newBed(t, setting{Device: fabrictest.DeviceConfig{MaxMessage: 1000, MaxOperations: 512}})
	dialed, accepted := b.connect(t, Config{})
	device := dialed.reactor.device.(*fabrictest.Device)
	b.Network.HoldCompletions(device)
	q, err := dialed.Send(make([]byte, 1_000_000))
	require.NoError(t, err)
	require.NotNil(t, q)
	require.Eventually(t, func() bool { return dialed.Stats().Pieces == piecesAtOnce }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return accepted.Stats().PiecesReceived == piecesAtOnce }, patience, time.Millisecond)
	var ahead, room int
	accepted.reactor.do(func() {
		if in, ok := accepted.reads.Get(0); ok {
			ahead, room = in.ahead, accepted.reactor.aheadRoom
		}
	})
	require.Positive(t, ahead)
	require.LessOrEqual(t, ahead, piecesAtOnce)
	require.Equal(t, 512/8, room+ahead)
	require.EqualValues(t, piecesAtOnce, dialed.Stats().Pieces)

	require.NoError(t, accepted.CloseNow())
	// The device would take the rest as well, as long as it is offered.
	require.Eventually(t, func() bool { return dialed.Stats().Err != nil }, patience, time.Millisecond)
	b.Network.StopHolding(device)
	require.ErrorIs(t, q.Wait(deadline(t)), ErrPeerLost)
	require.NoError(t, dialed.CloseNow())
	require.Eventually(t, func() bool {
		clean := false
		accepted.reactor.do(func() {
			clean = accepted.released && accepted.reactor.aheadRoom == 512/8
		})
		return clean
	}, patience, time.Millisecond)
}

// A stranger that takes the place of a piece ends the connection: what comes after it
// would be out of place.
func TestStrangerAmongPieces(t *testing.T) {
	b := newBed(t, setting{Device: fabrictest.DeviceConfig{MaxMessage: 1000, MaxOperations: 512}})
	from, to, third := b.open(t, Config{}), b.open(t, Config{}), b.open(t, Config{})
	dialed, accepted := join(t, from, to)
	other, otherEnd := join(t, third, to)
	device := from.device.(*fabrictest.Device)
	b.Network.HoldCompletions(device)
	q, err := dialed.Send(make([]byte, 1_000_000))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return accepted.Stats().PiecesReceived == piecesAtOnce }, patience, time.Millisecond)
	other.sendRaw(tagged.PayloadTag(dialed.remoteID, 0), make([]byte, 1000))
	_, err = accepted.ReadMessage(deadline(t), make([]byte, 1_000_000))
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorIs(t, err, errStranger)
	// The device would take the rest as well, as long as it is offered.
	require.Eventually(t, func() bool { return dialed.Stats().Err != nil }, patience, time.Millisecond)
	b.Network.StopHolding(device)
	require.Error(t, q.Wait(deadline(t)))
	require.NoError(t, dialed.CloseNow())
	require.NoError(t, accepted.CloseNow())
	closeBoth(t, other, otherEnd)
}

// A reader that gives up in the middle of a message leaves it to the next one.
func TestReaderGivesUpBetweenPieces(t *testing.T) {
	dialed, accepted := newBed(t, narrow[0]).connect(t, Config{WindowBytes: 1 << 20})
	const size = 500_000
	written := make(chan error, 1)
	go func() { written <- dialed.WriteMessage(context.Background(), message(1, 0, size)) }()
	gaveUp := 0
	for {
		ctx, cancel := context.WithCancel(t.Context())
		buf := make([]byte, size)
		read := make(chan error, 1)
		n := 0
		go func() {
			var err error
			n, err = accepted.ReadMessage(ctx, buf)
			read <- err
		}()
		if gaveUp < 3 {
			cancel()
		}
		err := <-read
		cancel()
		if err == nil {
			require.Equal(t, message(1, 0, size), buf[:n])
			break
		}
		gaveUp++
		require.ErrorIs(t, err, context.Canceled)
		var inFlight *InFlightError
		if errors.As(err, &inFlight) {
			<-inFlight.Released
		}
	}
	require.NoError(t, <-written)
	closeBoth(t, dialed, accepted)
}

// A connection that ends between two pieces ends both sides' calls.
func TestEndBetweenPieces(t *testing.T) {
	for _, s := range narrow {
		t.Run(s.Name, func(t *testing.T) {
			dialed, accepted := newBed(t, s).connect(t, Config{})
			written, read := make(chan error, 1), make(chan error, 1)
			go func() { written <- dialed.WriteMessage(context.Background(), make([]byte, 4<<20)) }()
			go func() {
				_, err := accepted.ReadMessage(context.Background(), make([]byte, 4<<20))
				read <- err
			}()
			require.Eventually(t, func() bool {
				got := 0
				accepted.reactor.do(func() {
					if in, ok := accepted.reads.Get(0); ok {
						got = in.got
					}
				})
				return got > 0 || len(written) > 0
			}, patience, 1e5)
			require.NoError(t, accepted.CloseNow())
			// Either may have been done before, and the other not.
			for _, err := range []error{<-read, <-written} {
				if err != nil {
					var ended *ConnError
					require.ErrorAs(t, err, &ended)
				}
			}
			_ = dialed.Close()
		})
	}
}
