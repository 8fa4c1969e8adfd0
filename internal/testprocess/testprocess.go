// Package testprocess has the processes that tests start: none is waited for without end,
// and none outlives the tests.
package testprocess

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// patience is for a process that should have ended by itself, and reserve what of the time
// of all tests is left then, to say so.
const (
	patience = 5 * time.Minute
	reserve  = 20 * time.Second
)

// Command is exec.Command. If the process has not ended within five minutes, or shortly
// before the tests would be over (go test -timeout), it gets SIGQUIT, of which a Go program
// says where it is, and is killed ten seconds later. Tests without a timeout have as much
// time as they take. It is likewise ended after the test, once the cleanups that follow this
// are done, and with this process, whatever ends that.
func Command(t *testing.T, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	if end, ok := t.Deadline(); ok {
		cancel()
		ctx, cancel = context.WithTimeout(context.Background(), min(patience, time.Until(end)-reserve))
	}
	t.Cleanup(cancel)
	p := exec.CommandContext(ctx, name, arguments...)
	p.Cancel = func() error { return p.Process.Signal(syscall.SIGQUIT) }
	p.WaitDelay = 10 * time.Second
	endWithParent(p)
	return p
}
