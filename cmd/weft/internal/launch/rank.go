package launch

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/internal/sharedmemory"
)

// rank is one process, the leader of a process group of its own.
type rank struct {
	number int
	pid    int // and group
	state  *os.ProcessState
	ended  chan struct{} // closed with state set

	mu     sync.Mutex
	gone   bool     // the group is empty, and its number may be somebody else's
	shared []string // files in /dev/shm that the process had when it was told to end
}

// start starts a rank. It ends with this process, whatever ends that.
func (j *job) start(number int, path string, environment []string) (*rank, error) {
	c := &exec.Cmd{
		Path: path, Args: j.Command, Env: environment,
		SysProcAttr: grouped(),
	}
	var reads, writes []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	for range 2 {
		read, write, err := os.Pipe()
		if err != nil {
			closeAll(append(reads, writes...))
			return nil, err
		}
		reads, writes = append(reads, read), append(writes, write)
	}
	c.Stdout, c.Stderr = writes[0], writes[1]
	err := c.Start()
	closeAll(writes)
	if err != nil {
		closeAll(reads)
		return nil, err
	}
	r := &rank{number: number, pid: c.Process.Pid, ended: make(chan struct{})}
	j.keeper.add(r.pid)
	var printing sync.WaitGroup
	prefix := strconv.Itoa(number)
	printing.Go(func() { j.output.copy(j.Stdout, prefix, reads[0]) })
	printing.Go(func() { j.output.copy(j.Stderr, prefix, reads[1]) })
	go func() {
		_ = c.Wait() // the state says it
		r.state = c.ProcessState
		close(r.ended)
		j.events <- event{rank: r}
		r.endGroup(j.Grace)
		j.keeper.remove(r.pid)
		r.takeBack()
		// Who has left the group may keep the output open.
		stop := time.AfterFunc(lastOutput, func() { closeAll(reads) })
		printing.Wait()
		stop.Stop()
		closeAll(reads)
		j.events <- event{rank: r, gone: true}
	}()
	return r, nil
}

// lastOutput is how long output is waited for from processes that have left the
// group of a rank that is gone.
const lastOutput = time.Second

// signal sends a signal to the group, unless that is gone.
func (r *rank) signal(s syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.gone {
		if r.shared == nil {
			r.shared = sharedmemory.Of(r.pid)
		}
		_ = syscall.Kill(-r.pid, s) // none may be left
	}
}

// takeBack removes the shared memory that the process did not come to remove: what was told
// to end was not asked whether it would. Only what it was seen to have is its own for sure:
// processes of containers with one /dev/shm may have the same number.
func (r *rank) takeBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.shared {
		_ = os.Remove(name) // mostly it is gone
	}
}

// lastKilled is how long processes are waited for that were killed. Only what hangs in
// the kernel takes longer.
const lastKilled = 5 * time.Second

// endGroup ends what the process has left in its group.
func (r *rank) endGroup(grace time.Duration) {
	r.signal(syscall.SIGTERM)
	began, killed := time.Now(), false
	for nap := time.Millisecond; r.inGroup(); nap = min(2*nap, 20*time.Millisecond) {
		if spent := time.Since(began); spent > grace+lastKilled {
			break
		} else if spent > grace && !killed {
			killed = true
			r.signal(syscall.SIGKILL)
		}
		time.Sleep(nap)
	}
	r.mu.Lock()
	r.gone = true
	r.mu.Unlock()
}

// inGroup says whether there is a process in the group, but for those that have ended.
func (r *rank) inGroup() bool {
	for {
		if pid, err := unix.Wait4(-r.pid, nil, unix.WNOHANG, nil); pid <= 0 && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return !errors.Is(syscall.Kill(-r.pid, 0), syscall.ESRCH)
}
