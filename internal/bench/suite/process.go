package suite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/sharedmemory"
)

// process is one side of a benchmark, seen by the runner.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bench.Complaint
}

// startProcess starts a side. It ends with ctx, at first by SIGTERM, so that a
// provider can clean up.
func startProcess(ctx context.Context, command []string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	p.cmd.Env = bench.Settings()
	p.cmd.Stderr = &p.stderr
	// An interrupt of the terminal is for the runner, which then ends its sides.
	p.cmd.SysProcAttr = bench.Grouped()
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 2 * time.Second
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.stdout = stdin, bufio.NewReaderSize(stdout, 4096)
	return p, p.cmd.Start()
}

// expect reads a line that begins with the word, and returns its other fields.
func (p *process) expect(word string) ([]string, error) {
	line, err := p.stdout.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("waiting for %q: %w", word, err)
	}
	fields := strings.Split(strings.TrimSuffix(string(line), "\n"), "\t")
	if fields[0] != word {
		return nil, fmt.Errorf("it said %q instead of %q", fields[0], word)
	}
	return fields[1:], nil
}

func (p *process) say(line string) error {
	_, err := io.WriteString(p.stdin, line+"\n")
	return err
}

// wait returns when the process has ended and nothing is left of it.
func (p *process) wait() error {
	p.stdin.Close()
	err := p.cmd.Wait()
	if err != nil {
		sharedmemory.Remove(p.cmd.Process.Pid)
		if said := strings.TrimSpace(p.stderr.String()); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
	}
	return err
}

// both does the same with two processes at once. The first error ends the other
// one too, by stop, so that it cannot be waited for in vain.
func both(stop context.CancelFunc, do func(i int) error) error {
	errs := make(chan error, 2)
	for i := range 2 {
		go func() {
			err := do(i)
			if err != nil {
				stop()
			}
			errs <- err
		}()
	}
	return errors.Join(<-errs, <-errs)
}
