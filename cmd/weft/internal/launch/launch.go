// Package launch runs the processes of a job on this machine, each of them a rank,
// and ends all of them when one fails.
package launch

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/weft-go/weft/bootstrap"
)

// Config says what to run.
type Config struct {
	// Size is the number of processes.
	Size int
	// Command is the program, which is looked for in PATH, and its arguments.
	Command []string
	// Timeout ends the job; 0 means never. Grace is how long processes have between
	// being told to end and SIGKILL.
	Timeout, Grace time.Duration
	// Stdout and Stderr take the output, by whole lines. They may be the same.
	Stdout, Stderr io.Writer
	// Signals are passed on to all processes.
	Signals <-chan os.Signal
	// Keeper is the command line of this program that runs [Keep].
	Keeper []string
	Logger *slog.Logger
}

// job is one that is running.
type job struct {
	Config
	ranks   []*rank
	server  *bootstrap.Server
	keeper  *keeper
	output  *output
	events  chan event
	failure error // the first
	// deserter is the rank that was lost as it ended well without leaving, or -1.
	deserter int

	ending      bool
	interrupted bool
	kill        <-chan time.Time // when the grace is over
}

// event is a change in the life of a rank.
type event struct {
	rank *rank
	gone bool // and with it all of its group; otherwise the process has ended
}

// Run runs a job to its end. The store of its ranks is served here and not by rank 0:
// so the port is known before any rank runs, what becomes of rank 0 is told to the
// others as well as what becomes of them, and rank 0 may end before they do.
//
// The error is a *[StartError], a *[RankError], a *[TimeoutError], or
// [ErrInterrupted] where a signal ended the job before its time.
func Run(c Config) error {
	path, err := find(c.Command[0])
	if err != nil {
		return err
	}
	// Who ends with its parent ends with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := adopt(); err != nil {
		return fmt.Errorf("cannot adopt what the ranks leave behind: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot serve the store of the job: %w", err)
	}
	name, key := random(8), []byte(random(32))
	j := &job{Config: c, deserter: -1, events: make(chan event, 2*c.Size)}
	j.server, err = bootstrap.Serve(listener, bootstrap.ServerConfig{Size: c.Size, Job: name, Key: key, Logger: c.Logger})
	if err != nil {
		return err
	}
	defer j.server.Close()
	port, err := freePort()
	if err != nil {
		return err
	}
	if j.keeper, err = startKeeper(c.Keeper); err != nil {
		return err
	}
	defer j.keeper.end()
	j.output = newOutput()
	store := "tcp://" + listener.Addr().String() + "?serve=no"
	inherited := bootstrap.WithoutJob(os.Environ())
	for number := range c.Size {
		m := bootstrap.Member{Rank: number, Size: c.Size, LocalRank: number, LocalSize: c.Size, Job: name}
		environment := append(m.Environment(store, key), torchSettings(m, port)...)
		r, err := j.start(number, path, append(inherited[:len(inherited):len(inherited)], environment...))
		if err != nil {
			j.failure = &StartError{Command: c.Command[0], Err: err}
			j.end(syscall.SIGTERM)
			break
		}
		j.ranks = append(j.ranks, r)
		c.Logger.Debug("weft: rank started", "rank", number, "pid", r.pid)
	}
	j.watch()
	return j.result()
}

// torchSettings are for programs that know torchrun's. The port is for rank 0 to
// listen at, as torch does.
func torchSettings(m bootstrap.Member, port int) []string {
	return []string{
		"RANK=" + strconv.Itoa(m.Rank), "WORLD_SIZE=" + strconv.Itoa(m.Size),
		"LOCAL_RANK=" + strconv.Itoa(m.LocalRank), "LOCAL_WORLD_SIZE=" + strconv.Itoa(m.LocalSize),
		"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + strconv.Itoa(port),
	}
}

// freePort finds a port where nobody listens now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("cannot find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// watch returns when all ranks are gone.
func (j *job) watch() {
	var late <-chan time.Time
	if j.Timeout > 0 {
		timer := time.NewTimer(j.Timeout)
		defer timer.Stop()
		late = timer.C
	}
	for left := len(j.ranks); left > 0; {
		select {
		case e := <-j.events:
			if e.gone {
				left--
				break
			}
			j.ended(e.rank)
		case s := <-j.Signals:
			j.pass(s.(syscall.Signal))
		case <-late:
			if j.failure == nil {
				j.failure = &TimeoutError{Timeout: j.Timeout, Running: j.running()}
			}
			j.end(syscall.SIGTERM)
		case err := <-j.output.failed:
			if j.failure == nil {
				j.failure = fmt.Errorf("cannot write what the ranks print: %w", err)
			}
			j.end(syscall.SIGTERM)
		case <-j.kill:
			j.signal(syscall.SIGKILL)
		}
	}
}

// ended looks how a process has ended.
func (j *job) ended(r *rank) {
	j.Logger.Debug("weft: rank ended", "rank", r.number, "state", r.state.String())
	if r.state.Success() {
		if j.server.Ended(r.number, errors.New("its process exited with code 0")) {
			j.deserter = r.number
		}
		return
	}
	failure := &RankError{Rank: r.number, State: r.state, Others: len(j.running()), Deserter: -1}
	// Those that wait for it hear of it, also if it had not joined.
	j.server.Lose(r.number, fmt.Errorf("it %s", failure.how()))
	if j.failure == nil && !j.interrupted {
		j.failure = failure
	}
	j.end(syscall.SIGTERM)
}

// end tells all processes to end, and has them killed later on.
func (j *job) end(s syscall.Signal) {
	if j.ending {
		return
	}
	j.ending = true
	j.kill = time.After(j.Grace)
	j.signal(s)
}

// pass passes a signal on. What ends a program ends the job; a second time at once.
func (j *job) pass(s syscall.Signal) {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		again := j.interrupted
		j.interrupted = true
		if again {
			j.signal(syscall.SIGKILL)
			return
		}
		if j.ending {
			j.signal(s)
		}
		j.end(s)
	default:
		j.signal(s)
	}
}

// signal sends a signal to the groups of all ranks that are not gone.
func (j *job) signal(s syscall.Signal) {
	for _, r := range j.ranks {
		r.signal(s)
	}
}

// running are the ranks whose process has not ended.
func (j *job) running() []int {
	var running []int
	for _, r := range j.ranks {
		select {
		case <-r.ended:
		default:
			running = append(running, r.number)
		}
	}
	return running
}

// result is how the job has ended.
func (j *job) result() error {
	if err := j.output.err(); err != nil && j.failure == nil {
		return fmt.Errorf("cannot write what the ranks print: %w", err)
	}
	var rank *RankError
	if errors.As(j.failure, &rank) {
		// Others may have heard of it, and failed, before its process had ended.
		rank.Deserter = j.deserter
	}
	if j.failure != nil || !j.interrupted {
		return j.failure
	}
	for _, r := range j.ranks {
		if !r.state.Success() {
			return ErrInterrupted
		}
	}
	return nil // all ended in order, as they were told
}
