// Package jobtest gives tests of packages above bootstrap jobs: ranks of one process, and
// ranks with a process each.
package jobtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weft-go/weft/internal/sharedmemory"
	"github.com/weft-go/weft/internal/testprocess"
)

// Meeting is where the ranks of one process exchange their addresses.
type Meeting struct {
	mu     sync.Mutex
	values [][]byte
	left   int
	all    chan struct{}
}

// NewMeeting is for so many ranks.
func NewMeeting(size int) *Meeting {
	return &Meeting{values: make([][]byte, size), left: size, all: make(chan struct{})}
}

// Exchange is a rank's comm.Exchange, for one call.
func (m *Meeting) Exchange(rank int) func(ctx context.Context, name string, mine []byte) ([][]byte, error) {
	return func(ctx context.Context, _ string, mine []byte) ([][]byte, error) {
		m.mu.Lock()
		m.values[rank] = bytes.Clone(mine)
		if m.left--; m.left == 0 {
			close(m.all)
		}
		m.mu.Unlock()
		select {
		case <-m.all:
			return m.values, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// variable has what a process is as a rank: the rank, the size, the provider, the place
// of the store, and its part.
const variable = "WEFT_TEST_RANK"

// Part is what a process is in a job of Ranks.
type Part struct {
	Rank, Size      int
	Provider, Store string
	Words           []string
}

// Play has play done, and does not return, in a process that Ranks has started. The test
// main calls it first.
func Play(play func(p Part) error) {
	words := strings.Fields(os.Getenv(variable))
	if len(words) < 4 {
		return
	}
	rank, _ := strconv.Atoi(words[0])
	size, _ := strconv.Atoi(words[1])
	if err := play(Part{rank, size, words[2], words[3], words[4:]}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Ranks runs this test's binary once for each rank of a job, and returns how each ended
// and what it said.
func Ranks(t *testing.T, size int, provider string, part ...string) (errs []error, said []string) {
	t.Helper()
	// A port that is free now need not be so when the rank listens.
	store := "file://" + t.TempDir()
	processes := make([]*exec.Cmd, size)
	outputs := make([]bytes.Buffer, size)
	for rank := range processes {
		p := testprocess.Command(t, os.Args[0])
		words := append([]string{strconv.Itoa(rank), strconv.Itoa(size), provider, store}, part...)
		p.Env = append(os.Environ(), variable+"="+strings.Join(words, " "))
		p.Stdout, p.Stderr = &outputs[rank], &outputs[rank]
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		processes[rank] = p
	}
	for rank, p := range processes {
		errs = append(errs, p.Wait())
		sharedmemory.Remove(p.Process.Pid)
		said = append(said, outputs[rank].String())
	}
	return errs, said
}
