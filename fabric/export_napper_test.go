//go:build linux

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
