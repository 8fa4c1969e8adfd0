package fabric

import "time"

// OpenNapper is what waits where a provider has nothing to wait on, for so long
// each time.
func OpenNapper(nap time.Duration) (wait, wake, end func(), err error) {
	n, err := newNapper()
	if err != nil {
		return nil, nil, nil, err
	}
	return func() { n.busy.Store(false); n.next = nap; n.wait(nap) }, n.wake, n.close, nil
}

// TrustSockets allows the shared send contexts of sockets until the returned
// function is called. They hold as long as there is no traffic.
func TrustSockets() (restore func()) {
	trustSockets = true
	return func() { trustSockets = false }
}

// Newcomers is of how many peers the vector still looks for the connection.
func Newcomers(v *AddressVector) int { return len(v.newcomers.names) }
