// Package keepalive has the system find out that the host of a TCP peer vanished without
// a word. A process that is stopped is alive.
package keepalive

import (
	"net"
	"time"
)

// What a timeout can be: the system asks once a second at most, and one question may
// get lost without harm; nor does it wait any longer between two questions.
const (
	Least = 4 * time.Second
	Most  = 24 * time.Hour
)

// questions is how many without an answer are the end where only they count.
const questions = 3

// times are for the system: how often to ask, in whole seconds, and after how much
// silence to give up, which is when the last question that fits into timeout has been
// without an answer. It is a little less than that moment, since the system only looks
// whenever it asks.
func times(timeout time.Duration) (every, silence time.Duration) {
	every = (timeout / (questions + 1)).Truncate(time.Second)
	return every, timeout.Truncate(every) - every/4
}

// Set ends a connection by an error when its peer has been silent for about timeout,
// which is from Least to Most. On what is not TCP it does nothing.
func Set(conn net.Conn, timeout time.Duration) {
	t, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	every, silence := times(timeout)
	// A system that cannot keep alive still reports what it notices.
	_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: every, Interval: every, Count: questions})
	giveUpAfter(t, silence)
}
