package fabric

// TrustSockets allows the shared send contexts of sockets until the returned
// function is called. They hold as long as there is no traffic.
func TrustSockets() (restore func()) {
	trustSockets = true
	return func() { trustSockets = false }
}

// Newcomers is of how many peers the vector still looks for the connection.
func Newcomers(v *AddressVector) int { return len(v.newcomers.names) }
