package fabric

// Event is what an event queue says: a [*ConnectionRequest], [ConnectedEvent],
// [ShutdownEvent], [NotifyEvent], [AVCompleteEvent], [MRCompleteEvent],
// [JoinCompleteEvent] or [UnknownEvent]. What has failed is not an event but an
// error, such as [*ConnectionError]. The bytes in an event are the program's.
type Event interface{ isEvent() }

// ConnectedEvent says that the endpoint's connection is there, on either side of
// it (FI_CONNECTED).
type ConnectedEvent struct {
	Endpoint *Endpoint
	// Data is what the peer gave to Accept; empty on the accepting side.
	Data []byte
}

// ShutdownEvent says that the endpoint's connection has ended, by Shutdown or
// Close of the peer (FI_SHUTDOWN). Some providers give it for Shutdown on this
// side too.
type ShutdownEvent struct{ Endpoint *Endpoint }

// NotifyEvent is one that Write put there (FI_NOTIFY). Providers may send some of
// their own, whose Data is theirs to explain.
type NotifyEvent struct{ Data uint64 }

// AVCompleteEvent says that an insertion into an address vector is done, and
// Count addresses were inserted (FI_AV_COMPLETE). Insertions of this package are
// done on return and have none.
type AVCompleteEvent struct{ Count uint64 }

// MRCompleteEvent says that a registration is done (FI_MR_COMPLETE).
// There are none but in a domain with [RegistrationEvents]. Data is the provider's to
// explain; which region it was, libfabric does not say.
type MRCompleteEvent struct{ Data uint64 }

// JoinCompleteEvent says that a group was joined (FI_JOIN_COMPLETE): one of the
// two kinds, and the other is nil.
type JoinCompleteEvent struct {
	Group     *Group          // of JoinCollective
	Multicast *MulticastGroup // of JoinMulticast
	Data      uint64          // the provider's to explain
}

// UnknownEvent is of a kind that this package does not know.
type UnknownEvent struct {
	Kind uint32 // libfabric's number of it
	Data uint64 // the provider's to explain
}

func (*ConnectionRequest) isEvent() {}
func (ConnectedEvent) isEvent()     {}
func (ShutdownEvent) isEvent()      {}
func (NotifyEvent) isEvent()        {}
func (AVCompleteEvent) isEvent()    {}
func (MRCompleteEvent) isEvent()    {}
func (JoinCompleteEvent) isEvent()  {}
func (UnknownEvent) isEvent()       {}

// ConnectionError is an error event about an endpoint: its connection was
// refused, or has failed. It is equal under errors.Is to what Err is, such as
// [ErrUnreachable].
type ConnectionError struct {
	Endpoint *Endpoint
	// Data is what the peer gave to Reject.
	Data []byte
	Err  *Error // what went wrong
}

// Error is that of Err.
func (e *ConnectionError) Error() string {
	if e.Err == nil {
		return "the connection has failed"
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ConnectionError) Unwrap() error {
	if e.Err == nil {
		return nil
	}
	return e.Err
}
