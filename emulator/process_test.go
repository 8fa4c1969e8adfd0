// What is tested is C, under sanitizers of its own: the race detector has nothing to
// see in it.
//go:build !race

package emulator_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a program that runs on the device.
type process struct {
	*exec.Cmd
	output bytes.Buffer // both of them; to be read after the end
	ended  chan struct{}
}

// start runs a program, which is killed at the end of the test if it still runs.
func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(name, args...)}
	p.Env = append(os.Environ(), "LD_PRELOAD="+device(t), "IPATH_NO_BACKTRACE=1",
		"FI_EFA_ENABLE_SHM_TRANSFER=0", "WEFT_EFA_COUNTERS=1")
	p.Env = append(p.Env, env...)
	p.begin(t)
	return p
}

// startCommand runs a program that is not on the device itself.
func startCommand(t *testing.T, line []string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(line[0], line[1:]...)}
	p.begin(t)
	return p
}

func (p *process) begin(t *testing.T) {
	t.Helper()
	p.ended = make(chan struct{})
	p.Stdout, p.Stderr = &p.output, &p.output
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, p.Start())
	go func() {
		_ = p.Wait() // the exit code is what is looked at
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
		<-p.ended
	})
}

// finish waits for the end of the program, and asserts that it went well.
func (p *process) finish(t *testing.T) string {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
		<-p.ended
		t.Fatalf("%s did not end:\n%s", p, &p.output)
	}
	require.Zero(t, p.ProcessState.ExitCode(), "%s\n%s", p, &p.output)
	return p.output.String()
}

// listening waits until somebody listens at the TCP port, in the network that the
// program is in.
func (p *process) listening(t *testing.T, port int) {
	t.Helper()
	p.listeningIn(t, p.Process.Pid, port)
}

// listeningIn does so in the network of another process, which p stands for.
func (p *process) listeningIn(t *testing.T, pid, port int) {
	t.Helper()
	tables := fmt.Sprintf("/proc/%d/net/", pid)
	socket := regexp.MustCompile(fmt.Sprintf(`(?m)^ *\d+: [0-9A-F]+:%04X [0-9A-F]+:0000 0A `, port))
	deadline := time.After(limit)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		for _, table := range []string{"tcp", "tcp6"} {
			if open, _ := os.ReadFile(tables + table); socket.Match(open) {
				return
			}
		}
		select {
		case <-p.ended:
			t.Fatalf("%s ended:\n%s", p, &p.output)
		case <-deadline:
			t.Fatalf("%s does not listen at port %d", p, port)
		case <-again.C:
		}
	}
}

// freePort is one that nobody listens at right now.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

var counter = regexp.MustCompile(`(\w+)=(\d+)`)

// counters reads the line that the device prints at the end.
func counters(t *testing.T, output string) map[string]int {
	t.Helper()
	values := map[string]int{}
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "weft-efa: pid=") {
			continue
		}
		for _, match := range counter.FindAllStringSubmatch(line, -1) {
			value, err := strconv.ParseUint(match[2], 10, 64)
			require.NoError(t, err)
			values[match[1]] = int(value)
		}
	}
	require.NotEmpty(t, values, "no counters in:\n%s", output)
	return values
}
