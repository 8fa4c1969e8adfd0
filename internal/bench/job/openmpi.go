package job

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/internal/bench"
)

//go:embed mpi/*.c
var sources embed.FS

// OpenMPI runs ranks of Open MPI on this host, which talk over memory that they share, as
// they do by themselves.
type OpenMPI struct {
	Folder string // for what is built
	Size   int
	// As those of Ranks.
	Time, Limit time.Duration
}

// MissingMPI says what Open MPI lacks on this machine, and is nil if it is there.
func MissingMPI() error {
	for _, program := range []string{"mpicc", "mpirun"} {
		if _, err := exec.LookPath(program); err != nil {
			return bench.NotHereError{Err: err}
		}
	}
	return nil
}

// Measure has the job measure cases of collectives without algorithms. The error is a
// bench.NotHereError if there is no Open MPI.
func (m OpenMPI) Measure(ctx context.Context, cases []Case) ([]bench.Sample, error) {
	args := []string{strconv.FormatInt(m.Time.Microseconds(), 10)}
	for _, c := range cases {
		args = append(args, c.String())
	}
	text, err := m.run(ctx, "collective", args)
	if err != nil {
		return nil, err
	}
	return parseSamples(text, len(cases))
}

// PingPong has two ranks send each other so many messages. The sample is half a round trip.
func (m OpenMPI) PingPong(ctx context.Context, warmup, count, bytes int) (bench.Sample, error) {
	m.Size = 2
	text, err := m.run(ctx, "pingpong", []string{strconv.Itoa(warmup), strconv.Itoa(count), strconv.Itoa(bytes)})
	if err != nil {
		return bench.Sample{}, err
	}
	samples, err := parseSamples(text, 1)
	if err != nil {
		return bench.Sample{}, err
	}
	return samples[0], nil
}

// run builds a program of mpi/, once, and returns what it prints.
func (m OpenMPI) run(ctx context.Context, name string, args []string) (string, error) {
	if err := MissingMPI(); err != nil {
		return "", err
	}
	program := filepath.Join(m.Folder, "mpi-"+name)
	if _, err := os.Stat(program); errors.Is(err, os.ErrNotExist) {
		if err := build(ctx, name, program); err != nil {
			return "", err
		}
	}
	ctx, stop := limited(ctx, m.Limit)
	defer stop()
	// Whoever waits yields its core where there are more ranks than cores, as weft's ranks do.
	// mpirun does so by itself, but where it sees fewer cores than Go it does it too early.
	yields := "0"
	if m.Size > runtime.NumCPU() {
		yields = "1"
	}
	// Two that start at the same time in one folder can fail, both, to make the same one in it.
	session, err := os.MkdirTemp("", "mpi")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(session)
	run := exec.CommandContext(ctx, "mpirun", append([]string{
		"--allow-run-as-root", "--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", yields,
		"-n", strconv.Itoa(m.Size), program,
	}, args...)...)
	run.Env = append(os.Environ(), "TMPDIR="+session)
	// mpirun ends its ranks when it is told to end, not when it is killed.
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	run.SysProcAttr = bench.Grouped()
	run.WaitDelay = 5 * time.Second
	var said bench.Complaint
	run.Stderr = &said
	text, err := run.Output()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("mpirun: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return string(text), nil
}

// build compiles a program. It appears at once: others may be about to run or to build it.
func build(ctx context.Context, name, program string) error {
	text, err := sources.ReadFile("mpi/" + name + ".c")
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(program), name)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	source, built := filepath.Join(work, name+".c"), filepath.Join(work, name)
	if err := os.WriteFile(source, text, 0o600); err != nil {
		return err
	}
	if _, err := bench.Output(ctx, []string{"mpicc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", built, source}); err != nil {
		return err
	}
	return os.Rename(built, program)
}
