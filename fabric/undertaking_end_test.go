package fabric_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/sharedmemory"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// counterpart is set in the process of the peer, to the provider.
const counterpart = "WEFT_TEST_COUNTERPART"

// A peer that is killed, or stopped, or goes on while operations of every kind are under
// way, from it and to it, ends nothing here: no write that was cut off is told of, other
// peers are as before, and everything can be closed.
func TestPeerEndsAmidUndertakings(t *testing.T) {
	if provider := os.Getenv(counterpart); provider != "" {
		undertakeWithParent(t, provider)
		return
	}
	providers := testenv.Providers()
	if slices.Contains(providers, "tcp") {
		if fabric.LibraryVersion().Major < 2 {
			providers = append(providers, "net")
		} else {
			// It has endpoints of its own beside those of ofi_rxm.
			providers = append(providers, "tcp;")
		}
	}
	for _, provider := range providers {
		for name, end := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP, "going on": 0} {
			t.Run(provider+"/"+name, func(t *testing.T) {
				if provider == "shm" && end == syscall.SIGSTOP && fabric.LibraryVersion().Major < 2 {
					testenv.Need(t, "stopped in the middle of shm", errors.New("a process that is stopped while it has the lock of another's queue keeps it: fi_cq_read does not return until it goes on, or ends"))
				}
				peerEndsAmidUndertakings(t, provider, end)
			})
		}
	}
}

func peerEndsAmidUndertakings(t *testing.T, provider string, end syscall.Signal) {
	// The last of all.
	t.Cleanup(func() { nothingOpen(t) })
	info := undertakingInfo(t, provider)
	f, d := partsOf(t, info)
	here := undertakers(t, f, d, info)
	other, another := openStation(t, f, d, info), openStation(t, f, d, info)
	toAnother, toOther := other.insert(t, another), another.insert(t, other)
	memory, remote := shared(t, other, undertakingMemory)

	var child *exec.Cmd
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
		sharedmemory.Remove(child.Process.Pid)
	})
	child = testprocess.Command(t, os.Args[0], "-test.run=^TestPeerEndsAmidUndertakings$", "-test.count=1")
	child.Env = append(os.Environ(), counterpart+"="+provider)
	var said bytes.Buffer
	child.Stderr = &said
	child.Stdin = strings.NewReader(invitation(t, here, remote))
	answers, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	heard := make(chan string, 16)
	go func() {
		defer close(heard)
		for lines := bufio.NewScanner(answers); lines.Scan(); {
			heard <- lines.Text()
		}
	}()
	deadline := time.Now().Add(time.Minute)
	turns := func(n int) {
		for range n {
			for _, u := range here {
				u.work(t)
				if u.told > 0 && u.name == "told write" {
					require.GreaterOrEqual(t, lastWrite(memory), u.told, "a write is told of that is not there")
				}
			}
		}
	}
	hear := func() string {
		for {
			select {
			case line, ok := <-heard:
				require.True(t, ok, "the peer has ended: %s", &said)
				return line
			default:
				require.True(t, time.Now().Before(deadline), "the peer says nothing")
				turns(1)
			}
		}
	}
	accept(t, here, hear())
	require.Equal(t, "under way", hear())
	for !allBegun(here) {
		require.True(t, time.Now().Before(deadline), "nothing is under way to the peer")
		turns(1)
	}
	turns(10)
	if end != 0 {
		require.NoError(t, child.Process.Signal(end))
	}
	if end == syscall.SIGKILL {
		require.Error(t, child.Wait())
	}
	turns(20)
	for range 3 {
		orderly(t, other, another, toAnother, toOther)
	}
	for _, u := range here {
		require.NoError(t, u.e.Close(), u.name)
	}
	orderly(t, other, another, toAnother, toOther)
}

// undertakeWithParent is the peer.
func undertakeWithParent(t *testing.T, provider string) {
	info := undertakingInfo(t, provider)
	f, d := partsOf(t, info)
	there := undertakers(t, f, d, info)
	_, remote := shared(t, there[0].station, undertakingMemory)
	invited := bufio.NewScanner(os.Stdin)
	invited.Buffer(nil, 1<<20)
	require.True(t, invited.Scan())
	accept(t, there, invited.Text())
	fmt.Print(invitation(t, there, remote))
	// Until this process is ended.
	for begun := false; ; {
		for _, u := range there {
			u.work(t)
		}
		if !begun && allBegun(there) {
			begun = true
			fmt.Println("under way")
		}
	}
}
