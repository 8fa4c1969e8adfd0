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

// Nor does one whose connection ends.
func TestConnectionEndsAmidReads(t *testing.T) {
	for name, end := range map[string]func(e *fabric.Endpoint) error{"Close": (*fabric.Endpoint).Close, "Shutdown": (*fabric.Endpoint).Shutdown} {
		for _, provider := range []string{"sockets", "tcp", "net"} {
			t.Run(provider+"/"+name, func(t *testing.T) {
				infos, err := fabric.Discover(fabric.Hints{
					Provider: provider, Endpoint: fabric.Connected, Capabilities: fabric.Messages | fabric.RemoteMemory,
					MemoryMode: everyMemoryMode, Source: "127.0.0.1",
				})
				testenv.Need(t, provider, err)
				x := openOffice(t, infos[0])
				x.queue = queueOf(t, x.domain, 64)
				one, other := x.couple(t)
				arena, err := fabric.NewArena(32 << 20)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, arena.Close()) })
				region, err := x.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessRemoteRead}, arena.Bytes())
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, region.Close()) })
				remote, err := region.RemoteOf(arena.Bytes())
				require.NoError(t, err)
				theirs := arena.Bytes()
				last := len(theirs) - 1
				theirs[0], theirs[last] = 1, 1
				for range 5 {
					reader, peer := x.couple(t)
					here := make([]byte, len(theirs))
					reads := []fabric.Op{{Kind: fabric.OpRead, Buf: here, Remote: remote, Context: 4}}
					var none []fabric.Op
					for deadline := time.Now().Add(30 * time.Second); here[0] == 0 && here[last] == 0; step(t, peer, &none) {
						require.True(t, time.Now().Before(deadline), "nothing is read")
						step(t, reader, &reads)
					}
					require.NoError(t, end(reader.e))
					if name == "Shutdown" {
						var ends [8]fabric.Completion
						n := 0
						for deadline := time.Now().Add(30 * time.Second); n == 0; n, err = other.Turn(nil, ends[:], 0) {
							require.NoError(t, err)
							require.True(t, time.Now().Before(deadline), "the read does not end")
						}
						require.Equal(t, 1, n)
						// What the kernel had was all of it, or not.
						require.Equal(t, ends[0].Err == nil, here[last] == 1)
						require.EqualValues(t, 4, ends[0].Context)
					}
					for range 3 {
						converse(t, one, other)
					}
				}
			})
		}
	}
}

// converse has two endpoints that are connected, and have one queue, exchange messages, with several
// receives at once.
func converse(t *testing.T, a, b *party) {
	t.Helper()
	var buffers [8][1]byte
	for i := range buffers {
		receive := []fabric.Op{{Kind: fabric.OpReceive, Buf: buffers[i][:], Context: 2}}
		for deadline := time.Now().Add(30 * time.Second); receive != nil; step(t, b, &receive) {
			require.True(t, time.Now().Before(deadline), "no receive")
		}
	}
	for i := range buffers {
		send := []fabric.Op{{Kind: fabric.OpSend, Buf: []byte{byte(1 + i)}, Context: 1}}
		for done, deadline := uint64(0), time.Now().Add(30*time.Second); done != 1|2; {
			require.True(t, time.Now().Before(deadline), "no message")
			var none []fabric.Op
			if n, c := step(t, b, &none); n > 0 {
				done |= c.Context
			}
			if n, c := step(t, a, &send); n > 0 {
				done |= c.Context
			}
		}
		require.Equal(t, byte(1+i), buffers[i][0])
	}
}
