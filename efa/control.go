package efa

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/weft-go/weft/internal/keepalive"
	"github.com/weft-go/weft/internal/proof"
)

// control is the TCP connection beside a connection: made for the handshake,
// and then the sign of life.
type control struct {
	tcp     net.Conn // frames go through this: TCP, or TLS
	beneath net.Conn // the TCP connection, if tcp is TLS
	// The proofs of the frames after the handshake, nil without a key. What is
	// sent belongs to the progress role, what comes to who reads.
	sent, came *proof.Frames

	// Of who reads: the beginning of a frame of which the rest is still to come, and
	// how many there were since the handshake.
	begun  []byte
	frames int

	// With TLS, frames are written by a goroutine: TLS has locks, and what holds
	// them may wait for the peer.
	mu      sync.Mutex
	waiting []byte // to be written
	writing bool
	closing bool
	labels  context.Context // of that goroutine
}

// send writes a frame with a count. It does not block: a connection carries three
// of these in its life, which any socket has room for.
func (k *control) send(t frameType, count uint64) {
	body := binary.LittleEndian.AppendUint64(nil, count)
	frame := appendFrame(nil, t, append(body, k.sent.Next(body, byte(t))...))
	if k.beneath == nil {
		_ = k.tcp.SetWriteDeadline(time.Now().Add(time.Second))
		// If it cannot be sent, the reading side of the connection finds out why.
		_, _ = k.tcp.Write(frame)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting = append(k.waiting, frame...)
	if !k.writing {
		k.writing = true
		go k.write()
	}
}

// write writes what waits, with TLS.
func (k *control) write() {
	wear(k.labels)
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.waiting) > 0 {
		frames := k.waiting
		k.waiting = nil
		k.mu.Unlock()
		_ = k.beneath.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = k.tcp.Write(frames)
		k.mu.Lock()
	}
	k.writing = false
	if k.closing {
		k.beneath.Close()
	}
}

// close ends the control connection, once everything is written. It does not
// block. TLS is not asked to say goodbye: the frames have said it.
func (k *control) close() {
	if k.beneath == nil {
		k.tcp.Close()
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closing = true
	if !k.writing {
		k.beneath.Close()
	}
}

// keepAlive has the system find a peer that vanished without a word.
func (k *control) keepAlive(timeout time.Duration) {
	tcp := k.tcp
	if k.beneath != nil {
		tcp = k.beneath
	}
	keepalive.Set(tcp, timeout)
}

// watch reads the control connection to its end, where the reactor's watcher cannot.
func (c *Conn) watch() {
	wear(c.reactor.labels.control)
	for c.heard(c.control.read(c.control.tcp)) {
	}
}

// heard takes in what the control connection has said, or how it ended, and says
// whether there may be more.
func (c *Conn) heard(t frameType, count uint64, err error) bool {
	r := c.reactor
	if err != nil {
		var refused *RefusedError
		if errors.Is(err, ErrHandshake) && !errors.As(err, &refused) {
			r.submit(func() { r.fail(c, ErrProtocol, err) })
		} else {
			r.submit(func() { r.hangUp(c, err) })
		}
		return false
	}
	r.submit(func() {
		switch t {
		case frameWritten:
			r.written(c, count)
		case frameFinish:
			r.finish(c, count)
		default:
			r.confirm(c, count)
		}
	})
	return true
}

// mostFrames come after the handshake: that the peer has written its last message,
// that it has closed, and that it has everything.
const mostFrames = 3

// read takes a frame with a count from what the peer has sent.
func (k *control) read(from io.Reader) (frameType, uint64, error) {
	t, body, err := readFrame(from, frameFinish, frameReceived, frameWritten)
	if err != nil {
		return 0, 0, err
	}
	if body, err = k.came.Check(body, byte(t)); err != nil {
		return 0, 0, err
	}
	if len(body) != 8 {
		return 0, 0, fmt.Errorf("%w: frame %d has %d bytes, and not 8", ErrHandshake, t, len(body))
	}
	if k.frames++; k.frames > mostFrames {
		return 0, 0, fmt.Errorf("%w: frame %d is one too many", ErrHandshake, t)
	}
	return t, binary.LittleEndian.Uint64(body), nil
}
