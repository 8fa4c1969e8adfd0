package efa

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func init() { roles["peerAt"] = playPeerAt }

// playPeerAt is playPeer with an endpoint of a given address.
func playPeerAt(orders *bufio.Scanner, arguments []string) error {
	provider, control, at := arguments[0], arguments[1], arguments[2]
	d, err := openAt(provider, at)
	if err != nil {
		return err
	}
	return playPeerWith(orders, control, &Config{Device: d})
}

// openAt opens a port with a given address: a port of 127.0.0.1, or a name for shm.
// The emulated device of efa makes its queue pair there, with a key that is new.
func openAt(provider, at string) (*fabric.Port, error) {
	hints := fabric.Hints{
		Provider: provider, Endpoint: fabric.ReliableDatagram,
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.SourceAddress,
		OrderedSends: true, OneThread: true,
		Source: "127.0.0.1", Service: at,
	}
	switch provider {
	case "shm":
		hints.Source, hints.Service = at, ""
	case "efa":
		hints.Source, hints.Service = "", ""
		hints.MemoryMode = fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys
		if err := os.Setenv("WEFT_EFA_FIRST_QPN", at); err != nil {
			return nil, err
		}
	}
	// What others have that ask for it by this name.
	choice, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Require: true, Logger: quiet})
	if err != nil {
		return nil, err
	}
	hints.Provider = choice.Info.Provider()
	infos, err := fabric.Discover(hints)
	if err != nil {
		return nil, err
	}
	return fabric.OpenPort(infos[0], fabric.PortConfig{})
}

// freeAddress is one that openAt can have.
func freeAddress(t *testing.T, provider string) string {
	t.Helper()
	if provider == "shm" {
		name := fmt.Sprintf("weft-restart-%d", os.Getpid())
		t.Cleanup(func() { removeSharedMemoryOf(name) })
		return name
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// A peer that is killed and comes back with the same endpoint address is another one:
// its connections before have ended in one way, and those after work.
func TestPeerIsRestarted(t *testing.T) {
	eachProcess(t, func(t *testing.T, b *bed) {
		r := b.open(t, *mortal(&Config{}))
		at := freeAddress(t, b.Provider)
		other := startProcess(t, "peer", b.Provider, "127.0.0.1:0")
		w := watchOver(t, asked(t, r, other.hear(t, "listening"), echoes))
		address, name := "127.0.0.1:0", ""
		for i := range 3 {
			peer := startProcess(t, "peerAt", b.Provider, address, at)
			address = peer.hear(t, "listening")
			idle, busy := asked(t, r, address, echoes), asked(t, r, address, echoes)
			require.Equal(t, idle.peer, busy.peer)
			if i > 0 && b.Provider == "efa" {
				const number = 18 // bytes of GID and QPN, before the key
				require.Equal(t, name[:number], idle.peer.name[:number])
				require.NotEqual(t, name, idle.peer.name)
			} else if i > 0 {
				require.Equal(t, name, idle.peer.name)
			}
			name = idle.peer.name
			for j, size := range []int{0, 10, 5000, 100_000} {
				require.NoError(t, idle.WriteMessage(deadline(t), message(i, j, size)))
				idle.expect(t, i, j, 1, size)
			}
			d := dying{long: b.mostAtDeath(), ends: make(map[string]chan error)}
			d.flood(t, busy)
			peer.killAmid(t, b.Provider)
			for what, end := range d.ends {
				select {
				case err := <-end:
					require.ErrorIs(t, err, ErrPeerLost, what)
				case <-time.After(patience):
					t.Fatalf("%s does not end", what)
				}
			}
			_, err := idle.ReadMessage(deadline(t), nil)
			require.ErrorIs(t, err, ErrPeerLost)
			var typed *ConnError
			require.ErrorAs(t, err, &typed)
			require.ErrorIs(t, idle.WriteMessage(deadline(t), nil), ErrPeerLost)
			require.NoError(t, idle.CloseNow())
			_ = busy.CloseNow()
			if i%2 == 1 {
				// Otherwise the next one comes before all is forgotten of this one.
				eventually(t, r, func() bool { return r.peers[name] == nil })
			}
			w.goesOn(t)
		}
		w.end(t)
	})
}

// removeSharedMemoryOf removes what the shm provider has of an endpoint with a name.
func removeSharedMemoryOf(name string) {
	names, _ := filepath.Glob("/dev/shm/" + name + "*")
	for _, name := range names {
		_ = os.Remove(name)
	}
}
