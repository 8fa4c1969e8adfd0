//go:build linux

package hosts

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A process of a host is this test's binary once more, in a role: a function that is
// given arguments and orders, and says what has happened, a line each. It ends when it
// has returned, or when the test has.

// variable is set for such a process: its role and its arguments.
const variable = "WEFT_TEST_HOST"

// Role is what a process does.
type Role func(arguments []string, orders <-chan string, say func(v any)) error

// Play does not return in a process of a host. The test main calls it first.
func Play(roles map[string]Role) {
	name, arguments, _ := strings.Cut(os.Getenv(variable), "\n")
	if name == "" {
		return
	}
	orders := make(chan string)
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			orders <- lines.Text()
		}
		// Nobody is left to say anything to.
		os.Exit(1)
	}()
	var one sync.Mutex
	say := func(v any) {
		line, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		one.Lock()
		defer one.Unlock()
		_, _ = os.Stdout.Write(append(line, '\n'))
	}
	if err := roles[name](strings.Split(arguments, "\n"), orders, say); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Process is one of a host's.
type Process struct {
	Name   string
	cmd    *exec.Cmd
	orders io.WriteCloser
	stderr bytes.Buffer
	lines  chan []byte   // closed at the end
	ended  chan struct{} // closed when err is set
	err    error
}

// Start starts a process in a role. env is added to the environment of this one, and the
// process is killed at the end of the test.
func (h *Host) Start(t testing.TB, name string, env []string, role string, arguments ...string) *Process {
	t.Helper()
	p := &Process{Name: name, cmd: exec.Command(os.Args[0], "-test.run=^$"), lines: make(chan []byte, 1000), ended: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), env...), variable+"="+role+"\n"+strings.Join(arguments, "\n"))
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	said, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.inside.do(p.cmd.Start); err != nil {
		t.Fatal(err)
	}
	go func() {
		all := bufio.NewScanner(said)
		all.Buffer(nil, 1<<20)
		for all.Scan() {
			p.lines <- bytes.Clone(all.Bytes())
		}
		close(p.lines)
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() && p.stderr.Len() > 0 {
			t.Logf("%s said: %s", p.Name, p.stderr.Bytes())
		}
	})
	return p
}

// Order gives the process a line.
func (p *Process) Order(format string, args ...any) error {
	_, err := fmt.Fprintf(p.orders, format+"\n", args...)
	return err
}

// Hear reads into v what the process says next, and waits for that up to a limit.
func (p *Process) Hear(v any, limit time.Duration) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case line, ok := <-p.lines:
		if !ok {
			<-p.ended
			return fmt.Errorf("%s has ended: %v: %s", p.Name, p.cmd.ProcessState, p.stderr.Bytes())
		}
		return json.Unmarshal(line, v)
	case <-late.C:
		return fmt.Errorf("%s says nothing for %v", p.Name, limit)
	}
}

// End waits for the end of the process, and returns how it ended.
func (p *Process) End(limit time.Duration) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("%s: %w: %s", p.Name, p.err, p.stderr.Bytes())
		}
		return nil
	case <-late.C:
		// Where it stands is in what it says when it is asked to leave.
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-p.ended:
		case <-time.After(5 * time.Second):
		}
		return fmt.Errorf("%s does not end within %v", p.Name, limit)
	}
}

// Kill kills the process, and returns when it has gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	// What it has said must not keep its reader.
	for range p.lines {
	}
	<-p.ended
	_ = p.orders.Close()
}
