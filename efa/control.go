package efa

import (
	"encoding/binary"
	"io"
	"net"
	"time"
)

// control is the TCP connection beside a connection: made for the handshake,
// and then the sign of life.
type control struct {
	tcp net.Conn
}

// keepAlive has the system find a peer that vanished without a word.
func keepAlive(tcp net.Conn, timeout time.Duration) {
	t, ok := tcp.(*net.TCPConn)
	if !ok {
		return
	}
	interval := max(timeout/4, time.Second)
	// A system that cannot keep alive still reports what it notices.
	_ = t.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: interval, Interval: interval, Count: 3,
	})
	_ = t.SetNoDelay(true)
}

// send writes a frame with a count. It does not block: a connection carries two
// of these in its life, which any socket has room for.
func (k *control) send(t frameType, count uint64) {
	_ = k.tcp.SetWriteDeadline(time.Now().Add(time.Second))
	// If it cannot be sent, the reading side of the connection finds out why.
	_, _ = k.tcp.Write(appendFrame(nil, t, binary.LittleEndian.AppendUint64(nil, count)))
}

// watch reads the control connection to its end.
func (c *Conn) watch() {
	r := c.reactor
	for {
		t, body, err := readFrame(c.control.tcp, frameFinish, frameReceived)
		if err == nil && len(body) != 8 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			r.submit(func() { r.hangUp(c, err) })
			return
		}
		count := binary.LittleEndian.Uint64(body)
		r.submit(func() {
			if t == frameFinish {
				r.finish(c, count)
			} else {
				r.confirm(c, count)
			}
		})
	}
}
