package efa

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/sharedmemory"
	"github.com/weft-go/weft/internal/testprocess"
)

// A test that needs a second process runs this binary again, in a role: a
// function that is told what to do by its arguments and by lines on its standard
// input, and answers by lines on its standard output. It ends when its standard
// input does, so that none outlives the test.

// roleVariable is set for such a process: the role and its arguments.
const roleVariable = "WEFT_TEST_ROLE"

var roles = map[string]func(orders *bufio.Scanner, arguments []string) error{}

// playRole does not return in a process that has a role.
func playRole() {
	name, arguments, _ := strings.Cut(os.Getenv(roleVariable), "\n")
	if name == "" {
		return
	}
	err := roles[name](bufio.NewScanner(os.Stdin), strings.Split(arguments, "\n"))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process is this binary in a role.
type process struct {
	*exec.Cmd
	orders io.WriteCloser
	says   *bufio.Reader
	stderr bytes.Buffer
	ended  chan struct{} // closed after Wait, which sets err
	err    error
}

func startProcess(t *testing.T, role string, arguments ...string) *process {
	t.Helper()
	return startProcessIn(t, nil, role, arguments...)
}

// startProcessIn starts it in namespaces of its own, say.
func startProcessIn(t *testing.T, apart func(*syscall.SysProcAttr), role string, arguments ...string) *process {
	t.Helper()
	p := &process{Cmd: testprocess.Command(t, os.Args[0], "-test.run=^$"), ended: make(chan struct{})}
	p.Env = append(os.Environ(), roleVariable+"="+role+"\n"+strings.Join(arguments, "\n"))
	p.Stderr = &p.stderr
	if apart != nil {
		apart(p.SysProcAttr)
	}
	var err error
	p.orders, err = p.StdinPipe()
	require.NoError(t, err)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	p.Stdout, p.says = write, bufio.NewReader(read)
	require.NoError(t, p.Start())
	require.NoError(t, write.Close())
	go func() {
		p.err = p.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		_ = read.Close()
		_ = p.orders.Close()
		sharedmemory.Remove(p.Process.Pid)
		if t.Failed() && p.stderr.Len() > 0 {
			t.Logf("%s said: %s", role, p.stderr.Bytes())
		}
	})
	return p
}

// hear returns the next line that the process says, which begins with the word.
func (p *process) hear(t *testing.T, word string) string {
	t.Helper()
	line, err := p.says.ReadString('\n')
	if err != nil {
		<-p.ended
		require.NoError(t, err, "waiting for %q: %v: %s", word, p.err, p.stderr.Bytes())
	}
	rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), word+" ")
	require.True(t, ok, "%q instead of %q", line, word)
	return rest
}

func (p *process) order(t *testing.T, line string) {
	t.Helper()
	_, err := io.WriteString(p.orders, line+"\n")
	require.NoError(t, err)
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.Process.Signal(s))
}

// stop stops the process, and returns when it has stopped.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
		_, state, _ := strings.Cut(string(stat), ") ")
		return err == nil && strings.HasPrefix(state, "T")
	}, patience, time.Millisecond)
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	<-p.ended
}

// givesBack has the test fail if it leaves anything. Called first, it looks last.
func givesBack(t *testing.T) {
	t.Helper()
	// Go's network poller has two descriptors from the first file on that it polls.
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, errors.Join(read.Close(), write.Close()))
	before := fabrictest.Holds()
	t.Cleanup(func() { require.NoError(t, before.Returned(patience)) })
}
