package fabric_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

const writer = "WEFT_TEST_WRITER"

// writtenSize is far more than is under way at a time.
const writtenSize = 64 << 20

// A peer that is killed, or stopped, in the middle of a write ends nothing here: the write
// is not told of, other peers are as before, and everything can be closed, also while a
// peer writes on.
func TestPeerEndsAmidWrite(t *testing.T) {
	if what := os.Getenv(writer); what != "" {
		writeToParent(t, what)
		return
	}
	providers := []string{"sockets", "tcp"}
	if fabric.LibraryVersion().Major < 2 {
		providers = append(providers, "net")
	} else {
		providers = append(providers, "tcp;")
	}
	for _, provider := range providers {
		for name, end := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP, "going on": 0} {
			for _, told := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/told %v", provider, name, told), func(t *testing.T) {
					peerEndsAmidWrite(t, provider, end, told)
				})
			}
		}
	}
}

func peerEndsAmidWrite(t *testing.T, provider string, end syscall.Signal, told bool) {
	// The last of all.
	t.Cleanup(func() { nothingOpen(t) })
	info := writeInfo(t, provider)
	f, d := partsOf(t, info)
	a, other := openStation(t, f, d, info), openStation(t, f, d, info)
	toOther, toA := a.insert(t, other), other.insert(t, a)
	name, err := a.e.Name()
	require.NoError(t, err)
	memory, remote := shared(t, a, writtenSize)

	child := testprocess.Command(t, os.Args[0], "-test.run=^TestPeerEndsAmidWrite$", "-test.count=1")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %d %v", writer, provider, hex.EncodeToString(name), remote.Address, remote.Key, told))
	var said bytes.Buffer
	child.Stdout, child.Stderr = &said, &said
	require.NoError(t, child.Start())
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for deadline := time.Now().Add(time.Minute); memory[1<<20] == 0; {
		select {
		case err := <-ended:
			t.Fatalf("the peer has ended: %v: %s", err, &said)
		default:
		}
		require.True(t, time.Now().Before(deadline), "nothing is written")
		a.turn(t, nil)
	}
	if end != 0 {
		require.NoError(t, child.Process.Signal(end))
		for range 100 {
			a.turn(t, nil)
		}
		require.Zero(t, memory[writtenSize-1], "the peer was too fast")
		for _, c := range a.got {
			require.False(t, c.HasImmediate, "%+v", c)
		}
	}
	if end == syscall.SIGKILL {
		require.Error(t, <-ended)
	}
	for range 10 {
		orderly(t, a, other, toOther, toA)
	}
	require.NoError(t, a.e.Close())
}

func writeInfo(t *testing.T, provider string) *fabric.Info {
	t.Helper()
	hints := fabric.Hints{
		Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: fabric.TaggedMessages | fabric.RemoteMemory,
		MemoryMode: everyMemoryMode, OneThread: true, Source: "127.0.0.1",
	}
	infos, err := fabric.Discover(hints)
	testenv.Need(t, provider, err)
	return infos[0]
}

// writeToParent is the peer.
func writeToParent(t *testing.T, what string) {
	words := strings.Fields(what)
	parent, err := hex.DecodeString(words[1])
	require.NoError(t, err)
	var numbers [2]uint64
	for i := range numbers {
		numbers[i], err = strconv.ParseUint(words[2+i], 10, 64)
		require.NoError(t, err)
	}
	info := writeInfo(t, words[0])
	f, d := partsOf(t, info)
	s := openStation(t, f, d, info)
	s.peer, err = s.v.Insert(parent)
	require.NoError(t, err)
	op := fabric.Op{Kind: fabric.OpWrite, Peer: s.peer, Buf: bytes.Repeat([]byte{1}, writtenSize), Remote: fabric.Remote{Address: numbers[0], Key: numbers[1]}}
	if words[4] == "true" {
		op.Flags, op.Immediate = fabric.Immediate, 7
	}
	for {
		// One after the other, until this process is ended.
		s.must(t, s, op)
		s.await(t, s)
	}
}
