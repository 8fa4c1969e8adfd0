package bootstrap

import (
	"net"
	"sync"
	"time"

	"github.com/weft-go/weft/internal/proof"
)

// outbox holds the frames that wait to be written to a connection. put never
// blocks; how many there can be is bounded by how many requests may be open.
type outbox struct {
	conn   net.Conn
	proofs *proof.Frames
	wake   chan struct{} // has room for one

	mu     sync.Mutex
	queue  []frame
	last   bool // nothing comes behind the queue; the connection ends with it
	broken bool // the connection has ended
}

func newOutbox(conn net.Conn, proofs *proof.Frames) *outbox {
	return &outbox{conn: conn, proofs: proofs, wake: make(chan struct{}, 1)}
}

// put has a frame written, the last one of the connection if last is set. What
// comes behind that is dropped.
func (o *outbox) put(f frame, last bool) {
	o.mu.Lock()
	if !o.last {
		o.queue, o.last = append(o.queue, f), last
	}
	o.mu.Unlock()
	o.rouse()
}

// breakOff ends the connection, whatever waits.
func (o *outbox) breakOff() {
	o.mu.Lock()
	o.broken = true
	o.mu.Unlock()
	_ = o.conn.Close()
	o.rouse()
}

func (o *outbox) rouse() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// lastWords is how long the last frame may take.
const lastWords = 2 * time.Second

// run writes until the connection ends. taken is told of each frame before that.
func (o *outbox) run(taken func(f frame)) {
	for range o.wake {
		o.mu.Lock()
		queue, last, broken := o.queue, o.last, o.broken
		o.queue = nil
		o.mu.Unlock()
		if last {
			_ = o.conn.SetWriteDeadline(time.Now().Add(lastWords))
		}
		for _, f := range queue {
			if broken {
				break
			}
			taken(f)
			broken = writeFrame(o.conn, f, o.proofs) != nil
		}
		if last || broken {
			o.hangUp(broken)
			return
		}
	}
}

// hangUp ends the connection for its reader. What has been written still gets there,
// which it would not if the connection was closed with something unread.
func (o *outbox) hangUp(broken bool) {
	half, ok := o.conn.(interface{ CloseWrite() error })
	if broken || !ok || half.CloseWrite() != nil {
		_ = o.conn.Close()
		return
	}
	_ = o.conn.SetReadDeadline(time.Now().Add(lastWords))
}
