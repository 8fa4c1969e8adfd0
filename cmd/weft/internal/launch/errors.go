package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrInterrupted says that a signal has ended the job.
var ErrInterrupted = errors.New("interrupted")

// The exit codes of shells and of timeout(1).
const (
	codeTimeout    = 124
	codeCannotRun  = 126
	codeNotFound   = 127
	codeSignalBase = 128
)

// StartError says that a command cannot be started.
type StartError struct {
	Command string
	Err     error
}

func (e *StartError) Error() string {
	why := e.Err
	var path *fs.PathError
	var lookup *exec.Error
	if errors.As(why, &lookup) {
		why = lookup.Err
	}
	if errors.As(why, &path) {
		why = path.Err
	}
	advice := ""
	switch {
	case errors.Is(e.Err, exec.ErrNotFound):
		why, advice = errors.New("there is no such command in PATH"), "; give its path, such as ./"+e.Command
	case errors.Is(e.Err, exec.ErrDot):
		why, advice = errors.New("it is in this folder, which PATH names only as a relative one"), "; write ./"+e.Command
	}
	return fmt.Sprintf("cannot start %q: %v%s", e.Command, why, advice)
}

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }

// ExitCode is 127 for what is not there, and else 126, as shells have it.
func (e *StartError) ExitCode() int {
	if errors.Is(e.Err, exec.ErrNotFound) || errors.Is(e.Err, fs.ErrNotExist) {
		return codeNotFound
	}
	return codeCannotRun
}

// RankError says how a rank has failed.
type RankError struct {
	Rank  int
	State *os.ProcessState
	// Others is how many ranks were running then.
	Others int
	// Deserter is a rank that had ended well, with others waiting for it, or -1.
	Deserter int
}

func (e *RankError) Error() string {
	text := "rank " + strconv.Itoa(e.Rank) + " " + e.how()
	if e.Deserter >= 0 {
		text += fmt.Sprintf(" after rank %d had exited with code 0 without leaving the job", e.Deserter)
	}
	switch e.Others {
	case 0:
		return text
	case 1:
		return text + "; the other rank was ended"
	}
	return fmt.Sprintf("%s; the %d others that were running were ended", text, e.Others)
}

func (e *RankError) how() string {
	status := e.State.Sys().(syscall.WaitStatus)
	if !status.Signaled() {
		return "exited with code " + strconv.Itoa(e.State.ExitCode())
	}
	text := "was killed by " + signalName(status.Signal())
	if status.CoreDump() {
		text += " (core dumped)"
	}
	return text
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(s))
}

// ExitCode is that of the rank; for one that was killed, 128 and the signal.
func (e *RankError) ExitCode() int {
	if status := e.State.Sys().(syscall.WaitStatus); status.Signaled() {
		return codeSignalBase + int(status.Signal())
	}
	return e.State.ExitCode()
}

// TimeoutError says that the job took too long.
type TimeoutError struct {
	Timeout time.Duration
	// Running are the ranks that had not ended.
	Running []int
}

func (e *TimeoutError) Error() string {
	var names []string
	for _, rank := range e.Running {
		if names = append(names, strconv.Itoa(rank)); len(names) == 20 && len(e.Running) > 20 {
			names = append(names, "...")
			break
		}
	}
	return fmt.Sprintf("the job has not ended within %v; still running: %s", e.Timeout, strings.Join(names, ", "))
}

// ExitCode is that of timeout(1).
func (e *TimeoutError) ExitCode() int { return codeTimeout }

// find finds a command before any process is started.
func find(command string) (string, error) {
	path, err := exec.LookPath(command)
	if err != nil {
		return "", &StartError{Command: command, Err: err}
	}
	return path, nil
}
