package efa

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// What ends connections is counted by kind, and so is what their calls were told.
func TestStatsOfErrors(t *testing.T) {
	each(t, func(t *testing.T, bd *bed) {
		from, to := bd.open(t, Config{}), bd.open(t, Config{})
		read := func(c *Conn) error {
			_, err := c.ReadMessage(deadline(t), make([]byte, 10))
			return err
		}
		// A violation.
		a, b := join(t, from, to)
		a.sendRaw(tagged.LengthTag(a.remoteID, 0), lengthOf(-1))
		require.ErrorIs(t, read(b), ErrProtocol)
		require.Equal(t, ErrorStats{Protocol: 1}, b.Stats().Errors)
		require.ErrorIs(t, b.Stats().Err, ErrProtocol)
		require.NoError(t, b.Close())
		require.NoError(t, a.CloseNow())
		// A peer that goes.
		a, b = join(t, from, to)
		require.NoError(t, a.CloseNow())
		require.ErrorIs(t, read(b), ErrPeerLost)
		require.ErrorIs(t, read(b), ErrPeerLost)
		require.Equal(t, ErrorStats{PeerLost: 2}, b.Stats().Errors)
		require.ErrorIs(t, b.WriteMessageAsync([]byte("x"), func(error) {}), ErrPeerLost)
		require.Equal(t, ErrorStats{PeerLost: 3}, b.Stats().Errors)
		require.NoError(t, b.Close())
		// This side, and a message that does not fit.
		a, b = join(t, from, to)
		require.NoError(t, a.WriteMessage(deadline(t), make([]byte, 11)))
		var size *MessageSizeError
		require.ErrorAs(t, read(b), &size)
		require.NoError(t, b.CloseNow())
		require.ErrorIs(t, read(b), net.ErrClosed)
		require.Equal(t, ErrorStats{MessageSize: 1, Closed: 1}, b.Stats().Errors)
		_ = a.CloseNow()
		// Nobody in time.
		a, b = join(t, from, to)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := b.ReadMessage(ctx, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, b.Stats().Errors.Deadline, uint64(1), "it may have been over before it began")
		closeBoth(t, a, b)
		require.Zero(t, b.Stats().Errors.Closed)

		require.Equal(t, ErrorStats{Protocol: 1, PeerLost: 1, Closed: 1}, to.Stats().Ended)
		require.EqualValues(t, 1, to.Stats().InOrder)
		require.EqualValues(t, 4, to.Stats().Opened)
	})
}

func TestErrorKinds(t *testing.T) {
	for _, test := range []struct {
		err  error
		want ErrorStats
	}{
		{net.ErrClosed, ErrorStats{Closed: 1}},
		{&ConnError{Kind: ErrPeerLost, Cause: net.ErrClosed}, ErrorStats{PeerLost: 1}},
		{&ConnError{Kind: ErrPeerClosed}, ErrorStats{PeerClosed: 1}},
		{&InFlightError{Err: &ConnError{Kind: &DeviceError{Err: io.EOF}}}, ErrorStats{Device: 1}},
		{&ConnError{Kind: ErrTransfer, Cause: &fabric.Error{Provider: "efa", Errno: 1}}, ErrorStats{Transfer: 1}},
		{&ConnError{Kind: os.ErrDeadlineExceeded}, ErrorStats{Deadline: 1}},
		{&InFlightError{Err: context.DeadlineExceeded}, ErrorStats{Deadline: 1}},
		{&PendingError{}, ErrorStats{WouldBlock: 1}},
		{errors.New("the program's own"), ErrorStats{Other: 1}},
		{ErrReady, ErrorStats{}},
		{io.EOF, ErrorStats{}},
	} {
		var s ErrorStats
		if kind := s.of(test.err); kind != nil {
			*kind++
		}
		require.Equal(t, test.want, s, "%v", test.err)
	}
}

// Handshakes by what came of them, on both sides.
func TestStatsOfHandshakes(t *testing.T) {
	b := newBed(t, plain)
	keyed, without := b.open(t, Config{Key: testKey(0)}), b.open(t, Config{})
	small := b.open(t, Config{Key: testKey(0), MaxConnections: 1})
	wrong := b.open(t, Config{Key: testKey(1)})
	ctx := deadline(t)
	l, err := small.Listen(ctx, "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	dialed, err := keyed.Dial(ctx, address)
	require.NoError(t, err)
	accepted, err := l.AcceptConn(ctx)
	require.NoError(t, err)
	_, err = keyed.Dial(ctx, address)
	require.ErrorIs(t, err, ErrTooManyConnections)
	_, err = without.Dial(ctx, address)
	require.ErrorIs(t, err, ErrUnauthorized)
	_, err = wrong.Dial(ctx, address)
	require.ErrorIs(t, err, ErrUnauthorized)
	tcp := stranger(t, l, []byte("GET / HTTP/1.1\r\n\r\n"))
	require.Error(t, refusal(t, tcp))
	tcp = stranger(t, l, nil)
	require.NoError(t, tcp.Close())
	require.Eventually(t, func() bool { return l.Stats().Accepting.Ended == 1 }, patience, time.Millisecond)
	require.Equal(t, HandshakeStats{Succeeded: 1, TooManyConnections: 1, Unauthorized: 2, NotWeft: 1, Ended: 1}, l.Stats().Accepting)
	require.NoError(t, l.Close())
	_, err = keyed.Dial(ctx, address)
	require.Error(t, err)
	require.Equal(t, HandshakeStats{Succeeded: 1, Refused: 1, Ended: 1}, keyed.Stats().Dialing)
	require.Equal(t, HandshakeStats{Refused: 1}, wrong.Stats().Dialing)
	require.EqualValues(t, 1, small.Stats().Opened)
	closeBoth(t, dialed, accepted)
	require.EqualValues(t, 1, small.Stats().InOrder)
	require.Zero(t, small.Stats().Ended, "what was withdrawn was never opened")
}
