package fabric

import "syscall"

// noAddress says of an endpoint of tcp that is about to be enabled that it has no address to listen at:
// SetName was refused its last one, by which libfabric has closed the socket that it had, or there was
// none from the beginning. libfabric would only say that its descriptor is bad.
func (e *Endpoint) noAddress() error {
	if e.Info().Endpoint() != ReliableDatagram || core(e.provider) != "tcp" && e.provider != "net" {
		return nil
	}
	if _, code := e.raw.Name(); code == 0 {
		return nil
	}
	if e.refusedName != "" {
		return noNameAnyMore("fi_enable", e.provider, e.refusedName)
	}
	detail := "libfabric cannot bind the address " + e.Info().SourceName() + ": the endpoint has none, and needs one of an interface (SetName)"
	return &Error{Op: "fi_enable", Provider: e.provider, Errno: Errno(syscall.EADDRNOTAVAIL), Detail: detail}
}

// noNameAnyMore says what has become of an endpoint that SetName was refused a name for.
func noNameAnyMore(op, provider, name string) error {
	return &Error{
		Op: op, Provider: provider, Errno: Errno(syscall.EADDRNOTAVAIL),
		Detail: "SetName was refused " + name + ": the endpoint has no address any more, and needs another",
	}
}
