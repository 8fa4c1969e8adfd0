package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed mpi/pingpong.c mpi/allreduce.c
var mpiSources embed.FS

// openMPI has two ranks of Open MPI send each other messages, and returns the seconds
// of half a round trip: over memory that they share, as it does by itself on one host.
func openMPI(ctx context.Context, t *tools, o order) (sample, error) {
	return runOpenMPI(ctx, t, o, "pingpong", 2)
}

// openMPIAllreduce has so many ranks of Open MPI add up what they have.
func openMPIAllreduce(ranks int) measure {
	return func(ctx context.Context, t *tools, o order) (sample, error) {
		return runOpenMPI(ctx, t, o, "allreduce", ranks)
	}
}

func runOpenMPI(ctx context.Context, t *tools, o order, name string, ranks int) (sample, error) {
	for _, program := range []string{"mpicc", "mpirun"} {
		if _, err := exec.LookPath(program); err != nil {
			return sample{}, errNotHere{err}
		}
	}
	program := filepath.Join(t.folder, "mpi-"+name)
	if _, err := os.Stat(program); err != nil {
		source := program + ".c"
		text, err := mpiSources.ReadFile("mpi/" + name + ".c")
		if err != nil {
			return sample{}, err
		}
		if err := os.WriteFile(source, text, 0o600); err != nil {
			return sample{}, err
		}
		if _, err := output(ctx, []string{"mpicc", "-O2", "-o", program, source}); err != nil {
			return sample{}, err
		}
	}
	ctx, stop := context.WithTimeout(ctx, o.deadline+grace)
	defer stop()
	run := exec.CommandContext(ctx, "mpirun", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe", "-n", strconv.Itoa(ranks),
		program, strconv.Itoa(o.warmup), strconv.Itoa(o.count), strconv.Itoa(o.size))
	var said complaint
	run.Stderr = &said
	text, err := run.Output()
	if err != nil {
		return sample{}, fmt.Errorf("mpirun: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return parseOpenMPI(string(text))
}

// parseOpenMPI reads what the programs of mpi/ print: the seconds of an operation, of all
// and of the part in the middle.
func parseOpenMPI(text string) (s sample, err error) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return s, fmt.Errorf("no figures in what Open MPI's ranks said: %q", text)
	}
	for i, into := range []*float64{&s.mean, &s.typical} {
		if *into, err = strconv.ParseFloat(fields[i], 64); err != nil || *into <= 0 {
			return s, fmt.Errorf("figures of Open MPI's ranks: %q", text)
		}
	}
	return s, nil
}
