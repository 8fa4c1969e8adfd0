package fabric_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// Shutdown of an endpoint of sockets, which closes it in libfabric, waits for calls of
// others, and ends those that wait; later ones post nothing.
func TestShutdownEndsCalls(t *testing.T) {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.Connected, Capabilities: fabric.Messages,
		MemoryMode: everyMemoryMode, Source: "127.0.0.1",
	})
	testenv.Need(t, "sockets", err)
	a, _ := openOffice(t, infos[0]).couple(t)
	left := make(chan error, 1)
	var ending atomic.Bool
	const longest = time.Minute
	go func() {
		var none [1]fabric.Completion
		var err error
		// It may come back early, for what there was to be told before.
		for err == nil && !ending.Load() {
			_, err = a.e.TurnWait(nil, none[:], int(longest.Milliseconds()))
		}
		left <- err
	}()
	require.Eventually(t, func() bool { return fabric.UsersOfEndpoint(a.e) > 0 }, time.Minute, time.Millisecond)
	ending.Store(true)
	began := time.Now()
	require.NoError(t, a.e.Shutdown())
	require.Less(t, time.Since(began), longest/2)
	require.Zero(t, fabric.UsersOfEndpoint(a.e), "a call is under way in what is freed")
	require.NoError(t, <-left)
	posts := []fabric.Op{{Kind: fabric.OpSend, Buf: make([]byte, 8)}, {Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)}}
	_, err = a.e.Turn(posts, nil, 0)
	require.NoError(t, err)
	for _, op := range posts {
		require.Equal(t, fabric.Failed, op.Result)
	}
	require.NoError(t, a.e.Shutdown())
}
