//go:build !linux

package collective

import "errors"

// shared is memory that processes of this host map. There is none here, nor a device for it.
type shared struct{}

var errNoShared = errors.New("collective: no shared memory on this system")

func newShared(int) (*shared, []byte, error) { return nil, nil, errNoShared }

func (*shared) name() (process, descriptor uint64) { return 0, 0 }

func (*shared) close() error { return nil }

func mapShared(_, _ uint64, _ int) ([]byte, error) { return nil, errNoShared }

func unmapShared([]byte) error { return nil }
