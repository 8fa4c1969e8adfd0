package efa

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// What Config.PeerTimeout can be: the system asks once a second at most, and takes
// so many seconds between two questions at most.
const (
	leastPeerTimeout = 4 * time.Second
	mostPeerTimeout  = 24 * time.Hour
)

// keepAliveTimes are for the system: how often to ask, in seconds, and after how
// much silence to give up, which is when the last question that fits into timeout
// has been without an answer. It is a little less than that moment, since the
// system only looks whenever it asks.
func keepAliveTimes(timeout time.Duration) (every int, silence time.Duration) {
	interval := (timeout / 4).Truncate(time.Second)
	return int(interval / time.Second), timeout.Truncate(interval) - interval/4
}

// keepAlive has the system find a peer that vanished without a word.
func (k *control) keepAlive(timeout time.Duration) {
	tcp := k.tcp
	if k.beneath != nil {
		tcp = k.beneath
	}
	t, ok := tcp.(*net.TCPConn)
	if !ok {
		return
	}
	every, silence := keepAliveTimes(timeout)
	// A system that cannot keep alive still reports what it notices.
	_ = t.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: time.Duration(every) * time.Second, Interval: time.Duration(every) * time.Second, Count: 4,
	})
	_ = t.SetNoDelay(true)
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	// Also for what was sent and has no answer, when the system does not ask.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence/time.Millisecond))
	})
}
