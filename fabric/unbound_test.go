package fabric_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// An endpoint that was opened and never enabled can be closed, whatever kind it is.
func TestCloseOfUnboundEndpoint(t *testing.T) {
	for _, provider := range append(testenv.Providers(), "udp", "net") {
		t.Run(provider, func(t *testing.T) {
			_, err := fabric.Discover(fabric.Hints{Provider: provider, Source: sourceOn(provider), MemoryMode: everyMemoryMode})
			testenv.Need(t, provider, err)
			for _, info := range closingInfos(t, provider) {
				_, d := partsOf(t, info)
				for range 3 {
					e, err := d.OpenEndpoint()
					require.NoError(t, err)
					require.NoError(t, e.Close(), "%v", info.Endpoint())
				}
			}
		})
	}
}

// Connections that an endpoint has accepted, and not heard of yet, end with it, however
// far they are.
func TestCloseEndsAcceptedConnections(t *testing.T) {
	for _, provider := range []string{"tcp", "net"} {
		t.Run(provider, func(t *testing.T) {
			infos, err := fabric.Discover(fabric.Hints{
				Provider: provider, Endpoint: fabric.ReliableDatagram, Source: sourceOn(provider), MemoryMode: everyMemoryMode,
				Capabilities: fabric.Messages,
			})
			testenv.Need(t, provider, err)
			f, d := partsOf(t, infos[0])
			meet := func(turnsOfSender, turnsOfReceiver int) {
				var ends [2]*fabric.Endpoint
				var vectors [2]*fabric.AddressVector
				q, events := queueOf(t, d, 16), eventsOf(t, f)
				for i := range ends {
					ends[i], vectors[i] = endpointOf(t, d), vectorOf(t, d)
					require.NoError(t, ends[i].Enable(vectors[i], q, events))
				}
				turn := func(e *fabric.Endpoint, posts ...fabric.Op) {
					var completions [8]fabric.Completion
					_, err := e.Turn(posts, completions[:], 0)
					require.NoError(t, err)
				}
				turn(ends[0], fabric.Op{Kind: fabric.OpSend, Peer: insert(t, vectors[0], ends[1]), Buf: make([]byte, 8)})
				for range turnsOfSender {
					turn(ends[0])
				}
				for range turnsOfReceiver {
					turn(ends[1])
				}
				require.NoError(t, ends[1].Close())
				require.NoError(t, ends[0].Close())
			}
			// What is made once is there after the first time.
			meet(4, 4)
			before := sockets(t)
			for a := range 4 {
				for b := range 4 {
					meet(a, b)
				}
			}
			require.Eventually(t, func() bool { return sockets(t) <= before }, 30*time.Second, time.Millisecond)
		})
	}
}

// sockets is how many of the process are IP's, and do not listen.
func sockets(t *testing.T) int { return len(connectedPorts(t)) }

// connectedPorts are the ports here of the process's sockets of IP that do not listen.
func connectedPorts(t *testing.T) (ports []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		require.NoError(t, err)
		if at, err := syscall.Getsockname(fd); err == nil {
			own, ip := at.(*syscall.SockaddrInet4)
			listens, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
			if ip && err == nil && listens == 0 {
				ports = append(ports, own.Port)
			}
		}
	}
	return ports
}
