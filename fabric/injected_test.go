package fabric_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testprocess"
)

const injectee = "WEFT_TEST_INJECTEE"

// A peer that does not take what was injected, and then is killed, goes on or stays as it is
// while the endpoint is closed, ends nothing here: other peers are as before, and everything
// can be closed.
func TestPeerEndsAmidInjects(t *testing.T) {
	if what := os.Getenv(injectee); what != "" {
		takeFromParent(t, what)
		return
	}
	providers := []string{"sockets", "tcp"}
	if fabric.LibraryVersion().Major < 2 {
		providers = append(providers, "net")
	} else {
		providers = append(providers, "tcp;")
	}
	for _, provider := range providers {
		for name, kind := range map[string]fabric.OpKind{"writes": fabric.OpWriteInject, "messages": fabric.OpTaggedInject} {
			for how, then := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": 0, "going on": syscall.SIGCONT} {
				t.Run(provider+"/"+name+"/"+how, func(t *testing.T) { peerEndsAmidInjects(t, provider, kind, then) })
			}
		}
	}
}

func peerEndsAmidInjects(t *testing.T, provider string, kind fabric.OpKind, then syscall.Signal) {
	// The last of all.
	t.Cleanup(func() { nothingOpen(t) })
	info := undertakingInfo(t, provider)
	f, d := partsOf(t, info)
	a, other := openStation(t, f, d, info), openStation(t, f, d, info)
	toOther, toA := a.insert(t, other), other.insert(t, a)
	name, err := a.e.Name()
	require.NoError(t, err)

	child := testprocess.Command(t, os.Args[0], "-test.run=^TestPeerEndsAmidInjects$", "-test.count=1")
	child.Env = append(os.Environ(), injectee+"="+provider+" "+hex.EncodeToString(name))
	said, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	var peer string
	op := fabric.Op{Kind: kind, Buf: make([]byte, 64)}
	lines := bufio.NewScanner(said)
	require.True(t, lines.Scan())
	_, err = fmt.Sscan(lines.Text(), &peer, &op.Remote.Address, &op.Remote.Key)
	require.NoError(t, err)
	address, err := hex.DecodeString(peer)
	require.NoError(t, err)
	op.Peer, err = a.v.Insert(address)
	require.NoError(t, err)
	// There is a connection once the peer has had the first.
	a.must(t, a, op)
	if kind == fabric.OpWriteInject {
		taken := make(chan bool, 1)
		go func() { taken <- lines.Scan() }()
		for waiting := true; waiting; {
			select {
			case ok := <-taken:
				require.True(t, ok)
				waiting = false
			default:
				a.turn(t, nil)
			}
		}
	}
	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
	// More than the connection holds; some providers keep any number.
	for refused, posts := 0, 0; refused < 100 && posts < 100_000; posts++ {
		one := []fabric.Op{op}
		a.turn(t, one)
		require.NoError(t, one[0].Err)
		if one[0].Result == fabric.Refused {
			refused++
		}
	}
	if then != 0 {
		require.NoError(t, child.Process.Signal(then))
	}
	if then == syscall.SIGKILL {
		require.Error(t, child.Wait())
		for range 10 {
			orderly(t, a, other, toOther, toA)
		}
	}
	require.NoError(t, a.e.Close())
}

// takeFromParent is the peer.
func takeFromParent(t *testing.T, what string) {
	words := strings.Fields(what)
	parent, err := hex.DecodeString(words[1])
	require.NoError(t, err)
	info := undertakingInfo(t, words[0])
	f, d := partsOf(t, info)
	s := openStation(t, f, d, info)
	s.peer, err = s.v.Insert(parent)
	require.NoError(t, err)
	memory, remote := shared(t, s, 4096)
	memory[0] = 1
	name, err := s.e.Name()
	require.NoError(t, err)
	fmt.Println(hex.EncodeToString(name), remote.Address, remote.Key)
	for said := false; ; {
		s.turn(t, nil)
		if !said && memory[0] == 0 {
			fmt.Println("written")
			said = true
		}
	}
}
