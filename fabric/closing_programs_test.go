package fabric_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/sharedmemory"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// A program opens, uses and closes whatever there is, in whatever order. Each step
// is a seed, which says what is done with which of the things that are open.
// Programs run in a process of their own, so that one that crashes is a failure like
// any other, and is made shorter by rapid.
type program []uint32

// closer says to the process that it runs programs on the provider.
const closer = "WEFT_TEST_CLOSER"

// ran is what the process says after each program.
const ran = "=ran"

// In whichever order things are closed, with operations in flight: it is a refusal
// that says what lives, or done; nothing crashes, and nothing is left.
func TestClosePrograms(t *testing.T) {
	if provider := os.Getenv(closer); provider != "" {
		runPrograms(t, provider)
		return
	}
	// How many programs.
	checks := flag.Lookup("rapid.checks").Value.String()
	require.NoError(t, flag.Set("rapid.checks", testenv.Setting(t, "SOAK_PROGRAMS", "40", func(s string) (string, error) { return s, nil })))
	defer func() { require.NoError(t, flag.Set("rapid.checks", checks)) }()
	for _, provider := range append(testenv.Providers(), "udp", "net") {
		t.Run(provider, func(t *testing.T) {
			_, err := fabric.Discover(fabric.Hints{Provider: provider, Source: sourceOn(provider), MemoryMode: everyMemoryMode})
			testenv.Need(t, provider, err)
			c := &closingProcess{t: t, provider: provider}
			defer func() { _ = c.end() }() // if it was not before
			rapid.Check(t, func(t *rapid.T) {
				said, err := c.run(rapid.SliceOfN(rapid.Uint32(), 1, 80).Draw(t, "steps"))
				if err != nil {
					t.Fatalf("%v after\n%s", err, said)
				}
			})
			require.NoError(t, c.end(), "%s%s", &c.rest, &c.errors)
		})
	}
}

// closingProcess runs programs, until one fails.
type closingProcess struct {
	t        *testing.T
	provider string
	command  *exec.Cmd // nil while there is none
	programs io.WriteCloser
	said     *bufio.Reader
	rest     bytes.Buffer // of what it said, after the last program
	errors   bytes.Buffer
}

func (c *closingProcess) start() error {
	c.rest.Reset()
	c.errors.Reset()
	// As long as the programs have: each has its own time.
	c.command = testprocess.Command(c.t, os.Args[0], "-test.run=^TestClosePrograms$", "-test.count=1", "-test.timeout=0")
	// What libfabric has freed is no longer what it was.
	c.command.Env = append(os.Environ(), closer+"="+c.provider, "MALLOC_PERTURB_=165")
	c.command.Stderr = &c.errors
	programs, err := c.command.StdinPipe()
	if err != nil {
		return err
	}
	said, err := c.command.StdoutPipe()
	if err != nil {
		return err
	}
	c.programs, c.said = programs, bufio.NewReader(said)
	return c.command.Start()
}

// run runs a program, and returns what it did if it failed.
func (c *closingProcess) run(p program) (said string, err error) {
	if c.command == nil {
		if err := c.start(); err != nil {
			return "", err
		}
	}
	// It may hang as well.
	patience := time.AfterFunc(2*time.Minute, func() { _ = c.command.Process.Signal(syscall.SIGQUIT) })
	defer patience.Stop()
	if err := json.NewEncoder(c.programs).Encode(p); err != nil {
		return "", err
	}
	var all strings.Builder
	for {
		line, err := c.said.ReadString('\n')
		if line == ran+"\n" {
			return "", nil
		}
		all.WriteString(line)
		if err != nil {
			err = c.end()
			return all.String() + c.errors.String(), fmt.Errorf("the process has ended: %w", err)
		}
	}
}

// end lets the process end, and what it has left in /dev/shm.
func (c *closingProcess) end() error {
	if c.command == nil {
		return nil
	}
	_ = c.programs.Close()
	_, _ = io.Copy(&c.rest, c.said)
	err := c.command.Wait()
	sharedmemory.Remove(c.command.Process.Pid)
	c.command = nil
	return err
}

// runPrograms is the process.
func runPrograms(t *testing.T, provider string) {
	infos := closingInfos(t, provider)
	// Providers make some descriptors and threads for the process, once.
	for i := range 2 * len(infos) {
		w := world{t: t, infos: infos[i%len(infos) : i%len(infos)+1], say: func(string, ...any) {}}
		w.run(nil, w.endpoint)
	}
	programs := json.NewDecoder(os.Stdin)
	for {
		var p program
		if err := programs.Decode(&p); err != nil {
			require.ErrorIs(t, err, io.EOF)
			return
		}
		before := fabrictest.Holds()
		w := world{t: t, infos: infos, say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
		w.run(p, nil)
		nothingOpen(t)
		// What is made once is there after the first time, and not more after the next.
		for left := 3; left > 0; left-- {
			err := before.Returned(5 * time.Second)
			if err == nil {
				break
			}
			require.Greater(t, left, 1, "%v", err)
			before = fabrictest.Holds()
			w.say("once more")
			w.run(p, nil)
		}
		names := fileNames(t)
		require.Empty(t, names)
		fmt.Println(ran)
	}
}

// fileNames are those that the process has in /dev/shm.
func fileNames(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(fmt.Sprintf("/dev/shm/%d:*", os.Getpid()))
	require.NoError(t, err)
	return names
}
