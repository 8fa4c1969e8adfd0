package fabric_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/sharedmemory"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

const strewer = "WEFT_TEST_STREWER"

// A peer in another process that closes its endpoint, or is killed, in the middle
// of messages that nobody has asked for harms nothing here: its messages come
// whole or not at all, other peers are as before, and everything can be closed.
func TestPeerEndsAmidMessages(t *testing.T) {
	if name := os.Getenv(strewer); name != "" {
		strewToParent(t, name)
		return
	}
	providers := []string{"sockets", "tcp", "shm"}
	if fabric.LibraryVersion().Major >= 2 {
		// It has endpoints of its own beside those of ofi_rxm.
		providers = append(providers, "tcp;")
	}
	for _, provider := range providers {
		for _, killed := range []bool{false, true} {
			name := provider + "/closed"
			if killed {
				name = provider + "/killed"
			}
			t.Run(name, func(t *testing.T) {
				if provider == "shm" && killed && fabric.LibraryVersion().Major >= 2 {
					testenv.Need(t, "killed in the middle of shm", errors.New("a process that is killed while it puts a message into another's queue leaves a place there that is never filled: nothing comes to that endpoint any more"))
				}
				info := strewInfo(t, provider)
				for seed := range uint64(3) {
					t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
						// The last of all.
						t.Cleanup(func() { nothingOpen(t) })
						peerEnds(t, info, provider, killed, rand.New(rand.NewPCG(seed, 21)))
					})
				}
			})
		}
	}
}

// What ofi_rxm sends at once it does not fetch, so that a peer may end amid longer messages, too,
// where the program has asked for it.
func TestPeerEndsAmidLongMessages(t *testing.T) {
	if !slices.Contains(testenv.Providers(), "tcp") || fabric.LibraryVersion().Major >= 2 {
		return // no such provider, or no such variable
	}
	ways := testprocess.Command(t, os.Args[0], "-test.run=^TestPeerEndsAmidMessages$/^tcp$", "-test.count=1", "-test.v")
	ways.Env = append(os.Environ(), eagerLimit+"=1000000000")
	said, err := ways.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "--- PASS: TestPeerEndsAmidMessages/tcp/killed/2")
}

// ofi_rxm of 2.x has messages of up to that in segments, if peers decide so: what is there of one
// whose sender ends is as if it had not come.
func TestPeerEndsAmidSegments(t *testing.T) {
	if !slices.Contains(testenv.Providers(), "tcp") || fabric.LibraryVersion().Major < 2 {
		return // no such provider, or no segments
	}
	settings := []string{"", "FI_OFI_RXM_USE_SRX=0", "FI_OFI_RXM_BUFFER_SIZE=100000"}
	if testing.Short() {
		settings = settings[:2]
	}
	for _, more := range settings {
		ways := testprocess.Command(t, os.Args[0], "-test.run=^TestPeerEndsAmidMessages$/^tcp$", "-test.count=1", "-test.v")
		ways.Env = append(os.Environ(), "FI_OFI_RXM_SAR_LIMIT=131072")
		if more != "" {
			ways.Env = append(ways.Env, more)
		}
		said, err := ways.CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.Contains(t, string(said), "--- PASS: TestPeerEndsAmidMessages/tcp/killed/2")
	}
}

func peerEnds(t *testing.T, info *fabric.Info, provider string, killed bool, random *rand.Rand) {
	f, d := partsOf(t, info)
	a, other := openStation(t, f, d, info), openStation(t, f, d, info)
	toOther, toA := a.insert(t, other), other.insert(t, a)
	name, err := a.e.Name()
	require.NoError(t, err)

	child := testprocess.Command(t, os.Args[0], "-test.run=^TestPeerEndsAmidMessages$", "-test.count=1")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", strewer, provider, hex.EncodeToString(name), random.Uint32()))
	var said bytes.Buffer
	child.Stderr = &said
	orders, err := child.StdinPipe()
	require.NoError(t, err)
	answers, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() {
		sharedmemory.Remove(child.Process.Pid)
	})
	heard := make(chan string, 16)
	go func() {
		defer close(heard)
		for lines := bufio.NewScanner(answers); lines.Scan(); {
			heard <- lines.Text()
		}
	}()
	gathered := gathering{station: a}
	// hear takes turns until the child has said something.
	hear := func() string {
		for {
			select {
			case line, ok := <-heard:
				require.True(t, ok, "the child has ended: %s", &said)
				return line
			default:
				a.turn(t, nil)
			}
		}
	}
	peer, err := hex.DecodeString(hear())
	require.NoError(t, err)
	a.peer, err = a.v.Insert(peer)
	require.NoError(t, err)
	fmt.Fprintln(orders, "go")
	a.strew(t, random, 4)
	require.Equal(t, "under way", hear())
	if random.IntN(3) == 0 {
		gathered.some(t, random)
	}
	for range random.IntN(20) {
		a.turn(t, nil)
	}
	if killed {
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
	} else {
		require.NoError(t, orders.Close())
		require.NoError(t, child.Wait(), "%s", &said)
	}
	for range 10 {
		gathered.some(t, random)
		// On shm it may have left a's queue with a place that is never filled.
		if !killed || provider != "shm" {
			orderly(t, a, other, toOther, toA)
		}
	}
}

// strewToParent is the peer.
func strewToParent(t *testing.T, what string) {
	words := strings.Fields(what)
	parent, err := hex.DecodeString(words[1])
	require.NoError(t, err)
	seed, err := strconv.ParseUint(words[2], 10, 64)
	require.NoError(t, err)
	info := strewInfo(t, words[0])
	f, d := partsOf(t, info)
	s := openStation(t, f, d, info)
	name, err := s.e.Name()
	require.NoError(t, err)
	fmt.Println(hex.EncodeToString(name))
	orders := bufio.NewScanner(os.Stdin)
	require.True(t, orders.Scan())
	s.peer, err = s.v.Insert(parent)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(seed, 4))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		orders.Scan()
	}()
	for begun := false; ; begun = true {
		s.strew(t, random, 3)
		if !begun {
			fmt.Println("under way")
		}
		select {
		case <-ended:
			require.NoError(t, s.e.Close())
			return
		default:
		}
	}
}
