package efa

// Stats are counts of a reactor since its beginning. What is about messages,
// connections and turns is taken at one moment.
type Stats struct {
	// Those of all connections together, ended ones included.
	MessageStats

	// Connections is the number of connections that the device still serves,
	// those in the middle of their handshake included.
	Connections int
	// Opened is the number of connections that have passed their handshake.
	Opened uint64
	// InOrder is the number of these that have ended with everything delivered
	// on both sides.
	InOrder uint64
	// Ended is the number of these that have ended otherwise, by what ended them:
	// Closed (by this side, at once or after Config.DrainTimeout), PeerLost,
	// Protocol, Device or Transfer. The others are 0.
	Ended ErrorStats
	// Accepting and Dialing count the handshakes by what came of them.
	Accepting, Dialing HandshakeStats

	// Rails are the devices of a reactor with rails, the first one first, and what
	// each carried; nil where there are none.
	Rails []RailStats

	// Dropped is the number of messages that belonged to no connection, did not
	// come from the connection's peer, or were too long for any.
	Dropped uint64

	// Turns is how often the device, or a rail, was offered operations and asked for
	// completions, in one call. Of these, EmptyTurns had neither.
	Turns, EmptyTurns uint64
	// Posts is the number of operations that the device took or failed, and
	// Completions the number of those it has reported as ended; an injected one
	// is ended with its post. Posts and Completions by Turns tell how much is
	// done at a time.
	Posts, Completions uint64
	// Crossings is the number of calls of the device while it was driven: turns,
	// waits, looks at its errors, registrations, peers, cancels. With libfabric
	// each is one call from Go into C.
	Crossings uint64

	// Reads is the number of reads of peers' memory that have ended well, and
	// BytesRead what they brought.
	Reads, BytesRead uint64
	// Writes is the number of writes to peers' memory that have ended well, and
	// BytesWritten what they took there.
	Writes, BytesWritten uint64

	// MatchedSent is the number of messages that were sent to be matched by the peer's
	// device, and MatchedReceived that of those that this side's device has matched.
	MatchedSent, MatchedReceived uint64

	// Parks is how often a call found nothing to do and parked. Of these, Follows
	// did so because another call was driving the device.
	Parks, Follows uint64
	// HandOvers is how often a call that was done woke one that followed it, to
	// drive the device.
	HandOvers uint64
	// Waits is how often the background goroutine waited for the device, and
	// IdleWakeUps how often there was nothing to do after that.
	Waits, IdleWakeUps uint64
	// Callbacks is the number of callbacks that have returned.
	Callbacks uint64
}

// RailStats count what one of several devices carried.
type RailStats struct {
	// Domain is the device's name.
	Domain string
	// SentBytes and ReceivedBytes are those of payloads that went by themselves, and
	// not in the message that tells the length: given to the device, and taken from
	// it.
	SentBytes, ReceivedBytes uint64
}

// ConnStats are counts of a connection since its beginning, taken at one moment.
type ConnStats struct {
	MessageStats

	// Waiting is the number of writes that wait for the reader's credit now, and
	// WaitingBytes how much they have to send.
	Waiting      int
	WaitingBytes int64
	// Unread is the number of messages that have been announced, and not been
	// read. It may be more than Received-Read: payloads can be on their way.
	Unread uint64
	// Err is what ended the connection, nil if nothing has or if it ended in
	// order.
	Err error
}

// MessageStats count what connections carried.
type MessageStats struct {
	// Sent is the number of messages that were begun, that is, had the reader's
	// credit and were given to the device or queued for it. SentBytes is their
	// length.
	Sent, SentBytes uint64
	// Each message sent is one of these: Bounced was copied to a buffer of the
	// reactor's, so that the caller had its own back at once; ZeroCopy went from
	// the caller's memory.
	Bounced, ZeroCopy uint64
	// Eager is the number of those that had their payload in the length message.
	Eager uint64
	// Groups is the number of length messages that carried several messages, and
	// Grouped how many messages those were.
	Groups, Grouped uint64
	// Pieces is the number of payload messages of those messages that were too
	// long for one.
	Pieces uint64
	// Held is the number of messages longer than the peer's whole window, which
	// wait on this side until somebody reads them.
	Held uint64

	// Received is the number of messages that are here whole, and ReceivedBytes
	// their length.
	Received, ReceivedBytes uint64
	// Each message received is one of these: Direct went to the memory of a reader
	// who waited for it; Parked came before its reader, or its reader had given up,
	// and was put into memory of the reactor's.
	Direct, Parked uint64
	// Read is the number of messages that have been read, or were discarded after
	// Close.
	Read uint64
	// GroupsReceived and PiecesReceived are Groups and Pieces of the peer.
	GroupsReceived, PiecesReceived uint64

	// LateArrivals is the number of messages of which the length came after that
	// of a later message.
	LateArrivals uint64
	// LateCompletions is how often the device was done with a part of a message
	// after one of a later message.
	LateCompletions uint64
	// Waited is the number of writes that had to wait in line for the reader's
	// credit.
	Waited uint64
	// GrantsSent and GrantsReceived are the control messages that give credit.
	GrantsSent, GrantsReceived uint64
	// Flushes is the number of flushes that were begun.
	Flushes uint64
	// Beside is the number of length messages, with or without their payload, and of control
	// messages that did not go by the device, but through memory that the peer, a process of this
	// host, has mapped as well (Config.DeviceOnly).
	Beside uint64
	// Injected is the number of operations that were over with their post.
	Injected uint64
	// Refused is how often the device did not take an operation for now, which was
	// then offered again. The reactor's count includes its shared receives.
	Refused uint64
	// Errors counts the calls, and the callbacks and completions of writes, that
	// ended with an error. What was wrong with a call's arguments is not in here.
	Errors ErrorStats
}

// ErrorStats count errors by their kind.
type ErrorStats struct {
	Closed      uint64 // net.ErrClosed: by this side
	PeerClosed  uint64 // ErrPeerClosed
	PeerLost    uint64 // ErrPeerLost
	Protocol    uint64 // ErrProtocol
	Device      uint64 // *DeviceError
	Transfer    uint64 // ErrTransfer
	Deadline    uint64 // os.ErrDeadlineExceeded or context.DeadlineExceeded
	Canceled    uint64 // context.Canceled
	MessageSize uint64 // *MessageSizeError
	WouldBlock  uint64 // ErrWouldBlock
	Other       uint64 // other causes of a context's end
}

// HandshakeStats count handshakes by what came of them.
type HandshakeStats struct {
	Succeeded uint64
	// Refused is the number of those that the peer refused, whatever the kind. The
	// others were this side's decision, or nobody's.
	Refused            uint64
	Unauthorized       uint64 // ErrUnauthorized
	TLS                uint64 // ErrTLS
	TooManyConnections uint64 // ErrTooManyConnections
	TooManyHandshakes  uint64 // ErrTooManyHandshakes: it was silent, and its place was needed; 0 where dialing
	Timeout            uint64 // ErrHandshakeTimeout
	FrameTooLong       uint64 // ErrFrameTooLong
	NotWeft            uint64 // *NotWeftError
	Ended              uint64 // the peer ended the control connection, or there was none
	Canceled           uint64 // the context ended, or the listener was closed
	Other              uint64 // the rest: no agreement on a provider, and so on
}

// Stats returns the counts so far, also after Close. It takes time in proportion
// to the number of connections, and waits until the reactor gets to it.
func (r *Reactor) Stats() Stats {
	var s Stats
	r.do(func() {
		s = r.stats
		s.MessageStats = r.retired
		for c := range r.connections() {
			one := c.messageStats()
			s.MessageStats.add(&one)
		}
		s.Turns, s.Connections = r.turns, r.table.count+r.plain.count
		for _, l := range r.rails {
			s.Turns += l.turns
		}
		s.Crossings += s.Turns
		s.Rails = r.railStats()
	})
	s.Accepting, s.Dialing = r.accepting.stats(), r.dialing.stats()
	s.Follows, s.HandOvers = r.followers.counts()
	s.Parks += s.Follows
	s.Callbacks = r.callbacks.count()
	return s
}

// Stats returns the counts so far, also after Close. It waits until the reactor
// gets to it.
func (c *Conn) Stats() ConnStats {
	var s ConnStats
	c.reactor.do(func() {
		s = ConnStats{
			MessageStats: c.messageStats(),
			Waiting:      c.waiting.length, WaitingBytes: c.waiting.bytes,
			Unread: c.arrived - c.consumed, Err: c.failure,
		}
	})
	return s
}

// Stats returns the counts of the listener's reactor, of which the listener may be
// the only owner.
func (l *Listener) Stats() Stats { return l.reactor.Stats() }
