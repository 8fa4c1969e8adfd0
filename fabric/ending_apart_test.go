package fabric_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// What ends on shm is nothing that an endpoint of another provider waits for when it opens,
// forgets a peer or closes.
func TestOthersDoNotWaitForTheEndsOfNeighbours(t *testing.T) {
	infos, err := fabric.Discover(fabric.Hints{Provider: "sockets", Endpoint: fabric.ReliableDatagram, MemoryMode: everyMemoryMode, Source: "127.0.0.1"})
	require.NoError(t, err)
	done := fabric.EndNeighbours()
	ended := make(chan error, 1)
	go func() {
		port, err := fabric.OpenPort(infos[0], fabric.PortConfig{})
		if err != nil {
			ended <- err
			return
		}
		peer, err := port.Insert(port.LocalAddress())
		if err == nil {
			err = port.Remove(peer)
		}
		ended <- errors.Join(err, port.Close())
	}()
	select {
	case err = <-ended:
		done()
	case <-time.After(time.Minute):
		done()
		err = errors.Join(errors.New("it waited"), <-ended)
	}
	require.NoError(t, err)
}
