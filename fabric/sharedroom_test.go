//go:build linux

package fabric_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// Where /dev/shm is full, an endpoint cannot be enabled, and those that are go on, whatever they do.
func TestSharedMemoryIsFull(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		if provider != "shm" && provider != "efa" {
			return
		}
		const child, size = "WEFT_TEST_SHARED_MEMORY", "80m"
		if os.Getenv(child) == "" {
			command := testprocess.Command(t, os.Args[0], "-test.run=^TestSharedMemoryIsFull$/^"+provider+"$", "-test.count=1", "-test.timeout=2m")
			command.Env = append(os.Environ(), child+"=yes", "FI_SHM_DISABLE_CMA=1")
			command.SysProcAttr.Unshareflags = unix.CLONE_NEWNS
			said, err := command.CombinedOutput()
			if errors.Is(err, unix.EPERM) {
				testenv.Need(t, "a /dev/shm of its own", err)
			}
			require.NoError(t, err, "%s", said)
			return
		}
		require.NoError(t, unix.Mount("weft", "/dev/shm", "tmpfs", 0, "size="+size))
		info := undertakingInfo(t, provider)
		f, d := partsOf(t, info)
		ready := func() *station {
			return &station{info: info, fabric: f, domain: d, events: eventsOf(t, f), q: queueOf(t, d, 512), v: vectorOf(t, d), e: endpointOf(t, d)}
		}
		var all []*station
		var full error
		var refused *station
		for full == nil && len(all) < 64 {
			s := ready()
			if full = s.e.Enable(s.v, s.q, s.events); full == nil {
				all = append(all, s)
			} else {
				refused = s
			}
		}
		var its unix.Statfs_t
		require.NoError(t, unix.Statfs("/dev/shm", &its))
		if its.Bfree == its.Blocks {
			return // efa has nothing there
		}
		require.ErrorIs(t, full, syscall.ENOSPC)
		require.ErrorContains(t, full, "--shm-size")
		require.Greater(t, len(all), 2)
		// Who has the queue of another is not looked at when that is read.
		sharer := ready()
		require.ErrorIs(t, sharer.e.Enable(sharer.v, all[0].q, sharer.events), syscall.ENOSPC)
		all[0].turn(t, nil)
		var together sync.WaitGroup
		for range 4 {
			s := ready()
			together.Go(func() { assert.ErrorIs(t, s.e.Enable(s.v, s.q, s.events), syscall.ENOSPC) })
		}
		together.Wait()
		require.NoError(t, refused.e.Close())

		// And nothing at all is left.
		rest, err := os.Create(filepath.Join("/dev/shm", "rest"))
		require.NoError(t, err)
		for err == nil {
			_, err = rest.Write(make([]byte, 4096))
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		a := all[0]
		for _, b := range all[1:] {
			toB, toA := a.insert(t, b), b.insert(t, a)
			orderly(t, a, b, toB, toA)
			fillPeer(t, a, b, toB)
		}
		require.NoError(t, rest.Close())
		require.NoError(t, os.Remove(rest.Name()))
		for _, s := range all {
			require.NoError(t, s.e.Close())
			require.NoError(t, s.v.Close())
		}
		again := endpointOf(t, d)
		require.NoError(t, again.Enable(refused.v, refused.q, refused.events))
		require.NoError(t, again.Close())
	})
}

// fillPeer sends what takes all of the memory that a peer shares: a long message, and many short ones that
// it does not receive until they are there.
func fillPeer(t *testing.T, a, b *station, toB fabric.Address) {
	t.Helper()
	const long, short, many = 8 << 20, 4096, 200
	into := make([]byte, long)
	b.must(t, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: into})
	sent := make([]byte, long)
	sent[long-1] = 1
	a.must(t, b, fabric.Op{Kind: fabric.OpSend, Peer: toB, Buf: sent})
	require.NoError(t, a.await(t, b).Err)
	require.NoError(t, b.await(t, a).Err)
	require.EqualValues(t, 1, into[long-1])
	for range many {
		a.must(t, b, fabric.Op{Kind: fabric.OpInject, Peer: toB, Buf: sent[long-64:]})
		a.must(t, b, fabric.Op{Kind: fabric.OpSend, Peer: toB, Buf: sent[long-short:]})
		require.NoError(t, a.await(t, b).Err)
	}
	for range 2 * many {
		b.must(t, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: into})
		require.NoError(t, b.await(t, a).Err)
	}
}
