package fabric_test

import (
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
	go func() {
		var none [1]fabric.Completion
		_, err := a.e.TurnWait(nil, none[:], 600_000)
		left <- err
	}()
	require.Eventually(t, func() bool { return fabric.UsersOfEndpoint(a.e) > 0 }, time.Minute, time.Millisecond)
	require.NoError(t, a.e.Shutdown())
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
