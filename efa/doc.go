// Package efa carries ordered messages between programs over a fabric device:
// AWS EFA where there is one, and any other provider of libfabric elsewhere.
//
// [Dial] and [Listen] make connections over a TCP control connection, which
// tells both sides the other's endpoint address and stays open as the sign of
// life. Messages do not go through it. A [Reactor] owns the device and may
// serve any number of connections and listeners.
//
// Whoever reaches a listener may connect, unless Config has a Key, which both
// sides must have, or TLS. Both protect the control connection: who the peer is,
// and how the connection ends. Neither encrypts the messages.
//
// Each write becomes a length message and a payload message, told apart by the
// indicators of package tagged; a short payload rides in the length message.
// With [Reactor.Attach] that is all there is to a connection, and the other side
// may be a program that knows libfabric only.
// Between processes of one host, over shm, short messages do not go by the device but through
// memory that both have mapped (Config.DeviceOnly).
// Whatever the order in which the device completes them, a [Conn] delivers
// messages in the order of writing, exactly once.
//
// # The progress role
//
// One goroutine at a time drives the device of a reactor, and everything that belongs to it:
// it has the progress role. A caller that waits takes it, or a goroutine of the reactor's
// where nobody does. What runs in the role, such as the methods of a [Handler], a [Sender] or
// a [Work], gets a [Progress], and must not block, nor call anything of this package but
// methods of that Progress: the role is not given to anybody else before it returns.
package efa
