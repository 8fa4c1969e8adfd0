// Package efa carries ordered messages between programs over a fabric device:
// AWS EFA where there is one, and any other provider of libfabric elsewhere.
//
// [Dial] and [Listen] make connections over a TCP control connection, which
// tells both sides the other's endpoint address and stays open as the sign of
// life. Messages do not go through it. A [Reactor] owns the device and may
// serve any number of connections and listeners.
//
// Each write becomes a length message and a payload message, told apart by the
// indicators of package tagged; a short payload rides in the length message.
// Whatever the order in which the device completes them, a [Conn] delivers
// messages in the order of writing, exactly once.
package efa
