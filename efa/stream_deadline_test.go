package efa

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// A Write that runs out of time says how much was sent, and the stream goes on
// from there: not a byte is lost or sent twice.
func TestStreamWriteTimesOutInTheMiddle(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.streams(t, Config{WindowBytes: 200_000})
		content := message(1, 1, 1_000_000)
		sent := 0
		for _, before := range []bool{true, false} {
			// Before, all is copied; while it waits, the device has its memory.
			ended := make(chan error)
			if before {
				require.NoError(t, dialed.SetWriteDeadline(time.Now().Add(time.Hour)))
			}
			go func() {
				n, err := dialed.Write(content[sent:])
				sent += n
				ended <- err
			}()
			stuck := func() (yes bool) {
				c := dialed.conn
				c.reactor.do(func() { yes = c.waiting.head != nil && c.waiting.head.held == 0 && c.waiting.head.sent > 0 })
				return yes
			}
			require.Eventually(t, stuck, patience, time.Millisecond)
			require.NoError(t, dialed.SetWriteDeadline(time.Unix(1, 0)))
			err := <-ended
			requireTimeout(t, err)
			require.Positive(t, sent)
			require.Less(t, sent, len(content))
			_, err = dialed.Write(content[sent:])
			requireTimeout(t, err)
			got := make([]byte, sent)
			if before {
				_, err = io.ReadFull(accepted, got)
				require.NoError(t, err)
				require.True(t, bytes.Equal(content[:sent], got))
				content, sent = content[sent:], 0
			}
			require.NoError(t, dialed.SetWriteDeadline(time.Time{}))
		}
		written := make(chan error)
		go func() {
			_, err := dialed.Write(content[sent:])
			written <- errors.Join(err, dialed.CloseWrite())
		}()
		got, err := io.ReadAll(accepted)
		require.NoError(t, err)
		require.NoError(t, <-written)
		require.True(t, bytes.Equal(content, got))
		closeStreams(t, dialed, accepted)
	})
}

// While a deadline is set, the device never has the caller's memory, so that a
// Write returns in time even if the peer has stopped, and its buffer is free.
func TestStreamDeadlineWithStoppedPeer(t *testing.T) {
	b := newBed(t, settings[0])
	dialed, accepted := b.streams(t, Config{WindowBytes: 200_000})
	from, to := dialed.conn.reactor.device.(*fabrictest.Device), accepted.conn.reactor.device.(*fabrictest.Device)
	b.Network.Partition(from, to)
	content := message(1, 1, 300_000)
	buf := bytes.Clone(content)
	require.NoError(t, dialed.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
	n, err := dialed.Write(buf)
	requireTimeout(t, err)
	require.Greater(t, n, 100_000)
	clear(buf)

	// Without one it waits for its memory, whoever wants it to end.
	require.NoError(t, dialed.SetWriteDeadline(time.Time{}))
	require.NoError(t, dialed.CloseWrite())
	b.Network.Heal(from, to)
	got, err := io.ReadAll(accepted)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content[:n], got))
	closeStreams(t, dialed, accepted)
}

// A Write whose memory the device has does not return before it has let go.
func TestStreamWriteKeepsItsBuffer(t *testing.T) {
	b := newBed(t, settings[0])
	dialed, accepted := b.streams(t, Config{})
	from, to := dialed.conn.reactor.device.(*fabrictest.Device), accepted.conn.reactor.device.(*fabrictest.Device)
	b.Network.Partition(from, to)
	content := message(1, 1, 1<<20)
	buf := bytes.Clone(content)
	ended := make(chan error)
	go func() {
		n, err := dialed.Write(buf)
		if n != len(buf) {
			t.Errorf("wrote %d bytes", n)
		}
		clear(buf)
		ended <- err
	}()
	lent := func() (yes bool) {
		c := dialed.conn
		c.reactor.do(func() {
			for op := c.operations; op != nil; op = op.next {
				yes = yes || op.write != nil && op.posted
			}
		})
		return yes
	}
	require.Eventually(t, lent, patience, time.Millisecond)
	require.NoError(t, dialed.SetWriteDeadline(time.Unix(1, 0)))
	select {
	case err := <-ended:
		t.Fatalf("Write returned while the device had its memory: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	b.Network.Heal(from, to)
	got := make([]byte, len(content))
	_, err := io.ReadFull(accepted, got)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	require.NoError(t, <-ended, "all of it was sent")
	closeStreams(t, dialed, accepted)
}

// A peer that ends a deadline's patience again and again does not lose a byte,
// whether the message was on its way to the reader's memory or not.
func TestStreamReadDeadlines(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.streams(t, Config{})
		content := message(1, 1, 4<<20)
		written := make(chan error)
		go func() {
			for rest := content; len(rest) > 0; {
				n, err := dialed.Write(rest[:min(len(rest), 200_000)])
				if err != nil {
					t.Errorf("write: %v", err)
				}
				rest = rest[n:]
			}
			written <- dialed.CloseWrite()
		}()
		// Somebody else moves the deadline about.
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				at := []time.Time{time.Unix(1, 0), {}, time.Now().Add(time.Hour), time.Now().Add(time.Microsecond)}[i%4]
				if err := accepted.SetReadDeadline(at); err != nil {
					t.Errorf("deadline: %v", err)
				}
				time.Sleep(50 * time.Microsecond)
			}
		}()
		var got []byte
		buf := make([]byte, 150_000)
		var err error
		for err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			var n int
			n, err = accepted.Read(buf)
			got = append(got, buf[:n]...)
			clear(buf)
		}
		close(stop)
		<-stopped
		require.Equal(t, io.EOF, err)
		require.True(t, bytes.Equal(content, got))
		require.NoError(t, <-written)
		closeStreams(t, dialed, accepted)
	})
}

func requireTimeout(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
}
