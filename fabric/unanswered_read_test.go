package fabric_test

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// What comes of a read after its endpoint was closed, which the peer did not answer, goes nowhere but to
// where it was to go: not into what the program has got since.
func TestUnansweredReadOfClosedEndpoint(t *testing.T) {
	const inPieces = "FI_SHM_DISABLE_CMA"
	if !slices.Contains(testenv.Providers(), "shm") {
		return
	}
	if os.Getenv(inPieces) == "" {
		command := testprocess.Command(t, os.Args[0], "-test.run=^TestUnansweredReadOfClosedEndpoint$", "-test.count=1", "-test.timeout=1m")
		command.Env = append(os.Environ(), inPieces+"=1")
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s", said)
		return
	}
	const size = 8 << 20
	info := undertakingInfo(t, "shm")
	here, there := openCouple(t, info), openCouple(t, info)
	a, b := here.another(t), there.another(t)
	a.peer, b.peer = a.insert(t, b), b.insert(t, a)
	theirs, remote := shared(t, b, size)
	for i := range theirs {
		theirs[i] = 1
	}
	func() {
		mine := make([]byte, size)
		a.must(t, b, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Buf: mine, Remote: remote})
		for deadline := time.Now().Add(30 * time.Second); mine[0] == 0; b.turn(t, nil) {
			require.True(t, time.Now().Before(deadline), "nothing is read")
			a.turn(t, nil)
		}
		require.Zero(t, mine[size-1], "it was over at once")
		require.NoError(t, a.e.Close())
	}()
	runtime.GC()
	var since [8][]byte
	for i := range since {
		since[i] = make([]byte, size)
	}
	for range 2000 {
		here.a.turn(t, nil)
		b.turn(t, nil)
	}
	for _, memory := range since {
		require.Equal(t, -1, bytes.IndexByte(memory, 1))
	}
	here.goOn(t)
	there.goOn(t)
}
