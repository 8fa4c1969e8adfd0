//go:build linux

package fabric_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Naps of any length end with a wake, before or meanwhile, and with the port.
func TestNapEnds(t *testing.T) {
	for _, nap := range []time.Duration{10 * time.Microsecond, 2 * time.Millisecond, time.Hour} {
		wait, wake, end, err := fabric.OpenNapper(nap)
		require.NoError(t, err)
		for i := range 1000 {
			by := wake
			if i == 999 {
				by = end
			}
			waited := make(chan struct{})
			go func() { wait(); close(waited) }()
			if i%2 == 0 {
				runtime.Gosched()
			}
			by()
			select {
			case <-waited:
			case <-time.After(time.Minute):
				t.Fatalf("a nap of %v does not end, at %d", nap, i)
			}
		}
	}
}
