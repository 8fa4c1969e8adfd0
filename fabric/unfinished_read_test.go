package fabric_test

import (
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// An endpoint that is closed when a part has come of what it reads takes nothing away from others of
// its domain, nor from whom it reads of.
func TestCloseAmidReads(t *testing.T) {
	const inPieces = "FI_SHM_DISABLE_CMA"
	providers := append(testenv.Providers(), "net")
	if slices.Contains(providers, "tcp") && fabric.LibraryVersion().Major >= 2 {
		providers = append(providers, "tcp;")
	}
	if os.Getenv(inPieces) != "" {
		providers = []string{"shm"}
	} else if slices.Contains(providers, "shm") {
		t.Run("in pieces", func(t *testing.T) {
			command := testprocess.Command(t, os.Args[0], "-test.run=^TestCloseAmidReads$", "-test.count=1", "-test.timeout=1m")
			command.Env = append(os.Environ(), inPieces+"=1")
			said, err := command.CombinedOutput()
			require.NoError(t, err, "%s", said)
		})
	}
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			info := undertakingInfo(t, provider)
			f, d := partsOf(t, info)
			one, other := openStation(t, f, d, info), openStation(t, f, d, info)
			toOther, toOne := one.insert(t, other), other.insert(t, one)
			far, there := partsOf(t, info)
			peer := openStation(t, far, there, info)
			theirs, remote := shared(t, peer, 32<<20)
			last := len(theirs) - 1
			theirs[0], theirs[last] = 1, 1
			var closed atomic.Bool
			turned := make(chan error)
			t.Cleanup(func() {
				closed.Store(true)
				require.NoError(t, <-turned)
			})
			go func() {
				var err error
				for completions := make([]fabric.Completion, 8); err == nil && !closed.Load(); {
					_, err = peer.e.Turn(nil, completions, 0)
					runtime.Gosched()
				}
				turned <- err
			}()
			for range 6 {
				reader := openStation(t, f, d, info)
				toPeer := reader.insert(t, peer)
				here := make([]byte, len(theirs))
				reader.must(t, one, fabric.Op{Kind: fabric.OpRead, Buf: here, Peer: toPeer, Remote: remote})
				for deadline := time.Now().Add(30 * time.Second); here[0] == 0 && here[last] == 0 && len(reader.got) == 0; {
					require.True(t, time.Now().Before(deadline), "nothing is read")
					reader.turn(t, nil)
				}
				require.NoError(t, reader.e.Close())
				for range 3 {
					orderly(t, one, other, toOther, toOne)
				}
			}
		})
	}
}
