package efa

import (
	"bytes"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// cutConnections ends the process's connections of TCP but those of the addresses.
func cutConnections(t *testing.T, spared ...net.Addr) (cut int) {
	t.Helper()
	portOf := func(a unix.Sockaddr) int {
		switch a := a.(type) {
		case *unix.SockaddrInet4:
			return a.Port
		case *unix.SockaddrInet6:
			return a.Port
		}
		return 0
	}
	var ports []int
	for _, a := range spared {
		_, port, err := net.SplitHostPort(a.String())
		require.NoError(t, err)
		n, err := strconv.Atoi(port)
		require.NoError(t, err)
		ports = append(ports, n)
	}
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		require.NoError(t, err)
		local, err := unix.Getsockname(fd)
		if err != nil {
			continue
		}
		remote, err := unix.Getpeername(fd)
		if err != nil || portOf(local) == 0 || slices.Contains(ports, portOf(local)) || slices.Contains(ports, portOf(remote)) {
			continue
		}
		if unix.Shutdown(fd, unix.SHUT_RDWR) == nil {
			cut++
		}
	}
	return cut
}

// Whoever hears of a write has its data, also if connections of the device break amid many: what
// is written next goes by a new one, which knows nothing of what the old one lost.
func TestToldWritesOfBrokenConnections(t *testing.T) {
	const rounds, writes, size = 4, 2000, 64 << 10
	each(t, func(t *testing.T, b *bed) {
		if !strings.HasPrefix(b.Provider, "tcp") {
			return
		}
		source := message(1, 1, size+writes*8)
		for round := range rounds {
			from, to := b.connect(t, Config{RemoteMemory: true})
			memory := make([]byte, writes*size)
			var e *Exposure
			var err error
			to.reactor.do(func() { e, err = Progress{to.reactor}.Expose(memory) })
			require.NoError(t, err)
			var heard, early atomic.Int32
			to.reactor.HandleWrites(func(_ Progress, i uint32) {
				heard.Add(1)
				if i > 0 && !bytes.Equal(memory[i*size:][:size], source[i*8:][:size]) {
					early.Add(1)
				}
			})
			sent := make(told, writes)
			from.reactor.do(func() {
				for i := range writes {
					w := &RemoteWrite{Src: source[i*8:][:size], To: e.Remote, Tell: true, Immediate: uint32(i)}
					w.To.Address += uint64(i * size)
					if err = (Progress{from.reactor}).Write(from, w, sent); err != nil {
						return
					}
				}
			})
			require.NoError(t, err)
			least := int32(20 * (round + 1))
			require.Eventually(t, func() bool { return heard.Load() >= least }, patience, time.Millisecond)
			require.Positive(t, cutConnections(t, from.LocalAddr(), from.RemoteAddr(), to.LocalAddr(), to.RemoteAddr()))
			for range writes {
				_ = sent.waitFor(t) // lost, or not
			}
			var closing sync.WaitGroup
			for _, c := range []*Conn{from, to} {
				closing.Go(func() { _ = c.Close() })
			}
			closing.Wait()
			require.Zero(t, early.Load(), "of %d writes of which the peer heard", heard.Load())
			to.reactor.do(func() { err = e.Close() })
			require.NoError(t, err)
		}
	})
}
