package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/sharedmemory"
)

// Ranks is a job of this program's processes.
type Ranks struct {
	// Command has the arguments, its name being the first, with which this program is a rank:
	// it is to call Play with those behind.
	Command  []string
	Folder   string // for what is needed meanwhile
	Provider string
	Size     int
	// Time is how long each case is measured for, about, if it has no number of calls, and
	// Limit when the job is ended, whatever it has done.
	Time, Limit time.Duration
	// Profile is the beginning of the names of files, to which each rank writes what takes
	// its processor's time; empty for none.
	Profile string
}

// TimeoutError says that a job took too long.
type TimeoutError struct{ Limit time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("it took longer than %v", e.Limit) }

// RankError says which rank has failed first, and what it said.
type RankError struct {
	Rank int
	Said string
	Err  error
}

func (e *RankError) Error() string {
	if e.Said != "" {
		return fmt.Sprintf("rank %d: %v: %s", e.Rank, e.Err, e.Said)
	}
	return fmt.Sprintf("rank %d: %v", e.Rank, e.Err)
}

// Unwrap returns Err.
func (e *RankError) Unwrap() error { return e.Err }

// Measure has the job measure cases, and returns a sample for each.
func (r Ranks) Measure(ctx context.Context, cases []Case) ([]bench.Sample, error) {
	text, err := r.run(ctx, cases)
	if err != nil {
		return nil, err
	}
	return parseSamples(text, len(cases))
}

// MeasureOffered is Measure of cases by schedule.Provider. Of those that the provider does not
// do, it returns why; of others that is empty.
func (r Ranks) MeasureOffered(ctx context.Context, cases []Case) (samples []bench.Sample, why []string, err error) {
	text, err := r.run(ctx, cases)
	if err != nil {
		return nil, nil, err
	}
	samples, why = make([]bench.Sample, len(cases)), make([]string, len(cases))
	var figures []string
	var offered []int
	for i, line := range lines(text) {
		if i >= len(cases) {
			return nil, nil, fmt.Errorf("more lines of figures than %d cases: %q", len(cases), text)
		}
		if reason, is := strings.CutPrefix(line, notOffered); is {
			why[i] = reason
			continue
		}
		figures, offered = append(figures, line), append(offered, i)
	}
	if len(figures) == 0 {
		return samples, why, nil
	}
	parsed, err := parseSamples(strings.Join(figures, "\n"), len(offered))
	if err != nil {
		return nil, nil, err
	}
	for i, s := range parsed {
		samples[offered[i]] = s
	}
	return samples, why, nil
}

// run has the job measure cases, and returns what rank 0 prints.
func (r Ranks) run(ctx context.Context, cases []Case) (text string, err error) {
	folder, err := os.MkdirTemp(r.Folder, "ranks-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	ctx, stop := limited(ctx, r.Limit)
	defer stop()
	ranks := make([]*exec.Cmd, r.Size)
	outputs, complaints := make([]bytes.Buffer, r.Size), make([]bench.Complaint, r.Size)
	ended := make(chan *RankError, r.Size)
	started := 0
	for rank := range ranks {
		args := append(append([]string{}, r.Command...), r.Provider, folder,
			strconv.Itoa(rank), strconv.Itoa(r.Size), strconv.FormatInt(r.Time.Microseconds(), 10))
		for _, c := range cases {
			args = append(args, c.String())
		}
		// What is measured is this program, whatever became of its file.
		p := exec.CommandContext(ctx, "/proc/self/exe")
		p.Args, p.Env = args, append(bench.Settings(), profileVariable+"="+r.Profile)
		p.Stdout, p.Stderr = &outputs[rank], &complaints[rank]
		p.SysProcAttr = bench.Grouped()
		p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) }
		p.WaitDelay = 2 * time.Second
		if err = p.Start(); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			stop()
			break
		}
		ranks[rank] = p
		started++
		go func() {
			failed := &RankError{Rank: rank, Err: p.Wait()}
			if failed.Err != nil {
				sharedmemory.Remove(p.Process.Pid)
				failed.Said = strings.TrimSpace(complaints[rank].String())
			}
			ended <- failed
		}()
	}
	for range started {
		if failed := <-ended; failed.Err != nil && err == nil {
			// The others may wait for it.
			err = failed
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			stop()
		}
	}
	if err != nil {
		return "", err
	}
	return outputs[0].String(), nil
}

// limited is a context that ends with a *TimeoutError.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, &TimeoutError{limit})
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// parseSamples reads what rank 0 of either job prints: a line for each case.
func parseSamples(text string, cases int) ([]bench.Sample, error) {
	lines := lines(text)
	if len(lines) != cases {
		return nil, fmt.Errorf("%d lines of figures for %d cases: %q", len(lines), cases, text)
	}
	samples := make([]bench.Sample, cases)
	for i, line := range lines {
		s := &samples[i]
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("no figures in %q", line)
		}
		var errs [3]error
		s.Mean, errs[0] = strconv.ParseFloat(fields[0], 64)
		s.Typical, errs[1] = strconv.ParseFloat(fields[1], 64)
		s.Operations, errs[2] = strconv.Atoi(fields[2])
		if err := errors.Join(errs[:]...); err != nil || !(s.Mean > 0) || !(s.Typical > 0) || s.Operations < 1 {
			return nil, fmt.Errorf("figures that cannot be: %q", line)
		}
	}
	return samples, nil
}
