//go:build linux

package fabric_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/fabric"
)

// The thread of sockets that accepts does not look at what has ended: it would never rest.
func TestClosedSharerIsNotLookedAt(t *testing.T) {
	info := datagramsFor(t, "sockets", fabric.Messages|fabric.TaggedMessages)
	sharing, err := info.WithContexts(1, fabric.SharedContext)
	require.NoError(t, err)
	c := openCorner(t, info)
	pool := c.queue(t)
	srx, err := c.domain.OpenSharedReceive(sharing, pool)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srx.Close()) })
	end, _ := c.endpoint(t, sharing, fabric.Bindings{Events: c.events, Send: c.queue(t), Receive: pool, SharedReceive: srx})
	require.NoError(t, end.e.Close())
	sets, err := filepath.Glob("/proc/self/fdinfo/*")
	require.NoError(t, err)
	looked := 0
	for _, set := range sets {
		text, err := os.ReadFile(set)
		if err != nil {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^tfd:\s+(\d+)`).FindAllSubmatch(text, -1) {
			fd, err := strconv.Atoi(string(m[1]))
			require.NoError(t, err)
			looked++
			kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
			if err != nil || kind != unix.SOCK_STREAM {
				continue
			}
			listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
			require.NoError(t, err)
			_, err = unix.Getpeername(fd)
			require.False(t, listens == 0 && errors.Is(err, unix.ENOTCONN), "a set has a socket that was shut down")
		}
	}
	require.Positive(t, looked)
}
