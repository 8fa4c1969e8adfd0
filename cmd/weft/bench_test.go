package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/cmd/weft/internal/survey"
	"github.com/weft-go/weft/internal/testenv"
)

func TestBenchScripts(t *testing.T) {
	needProvider(t, "tcp")
	params := scripts("testdata/bench", map[string]string{"PROVIDER": "tcp"})
	setup := params.Setup
	params.Setup = func(e *testscript.Env) error {
		err := setup(e)
		// This program and no other: Open MPI takes seconds to start, and may be there or not.
		e.Setenv("PATH", filepath.SplitList(e.Getenv("PATH"))[0])
		return err
	}
	testscript.Run(t, params)
}

// brokenPipe is where nobody reads any more.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// Whoever reads what is printed may go away; the files are there nevertheless.
func TestBenchWritesFilesFirst(t *testing.T) {
	dir := t.TempDir()
	names := []string{filepath.Join(dir, "out.json"), filepath.Join(dir, "out.svg")}
	reader := &terminal{stdout: brokenPipe{}, stderr: io.Discard}
	err := reader.run([]string{
		"bench", "collective", "--simulate", "efa", "--ranks", "8", "--sizes", "8", "--collectives", "bcast", "--json", names[0], "--plot", names[1],
	})
	require.ErrorIs(t, err, syscall.EPIPE)
	for _, name := range names {
		require.FileExists(t, name)
	}
}

// What a user may not write is told before anything is measured, and left as it is.
func TestBenchMayNotWrite(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Need(t, "root", errors.New("only root can start a process of another user"))
	}
	const nobody = 65534
	command, dir := weftOf(t, nobody)
	testenv.Need(t, "another user", command("info").Run())
	mine := filepath.Join(dir, "mine")
	require.NoError(t, os.Mkdir(mine, 0o755))
	file := filepath.Join(mine, "file.svg")
	require.NoError(t, os.WriteFile(file, []byte("content"), 0o644))
	for _, args := range [][]string{
		{"bench", "--json", file},
		{"bench", "--html", filepath.Join(mine, "new.html")},
		{"bench", "--profile", mine},
		{"bench", "collective", "--json", file},
		{"bench", "collective", "--plot", file},
		{"bench", "collective", "--plot", filepath.Join(mine, "new.svg")},
	} {
		p := startCommand(t, command(args...))
		p.await(t, generous)
		require.Regexp(t, `^weft: cannot write .*permission denied\n$`, p.stderr.String(), "%q", args)
		require.Equal(t, exitFailed, p.ProcessState.ExitCode(), "%q", args)
		require.Empty(t, readAll(t, p), "%q", args)
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
	names, err := os.ReadDir(mine)
	require.NoError(t, err)
	require.Len(t, names, 1)
}

// An interrupt ends a survey with the rounds that are complete.
func TestBenchIsInterrupted(t *testing.T) {
	needProvider(t, "tcp")
	file, temporary := filepath.Join(t.TempDir(), "out.json"), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("PATH", filepath.SplitList(os.Getenv("PATH"))[0]) // weft and no Open MPI, see TestBenchScripts
	p := start(t, "bench", "collective", "--provider", "tcp", "--ranks", "2", "--sizes", "8", "--collectives", "barrier,bcast",
		"--time", "1ms", "--rounds", "1000000", "--json", file)
	// A round is three jobs, and each has a folder while it works.
	jobs := map[string]bool{}
	require.Eventually(t, func() bool {
		folders, err := filepath.Glob(filepath.Join(temporary, "weft-bench-*", "ranks-*"))
		for _, folder := range folders {
			jobs[folder] = true
		}
		return err == nil && len(jobs) > 3
	}, generous, time.Millisecond)
	require.NoError(t, p.Process.Signal(os.Interrupt))
	// It prints more than a pipe is sure to hold.
	printed := readAll(t, p)
	p.await(t, generous)
	p.requireOneLine(t, exitInterrupted, "weft: interrupted\n")
	require.Contains(t, printed, "The survey was interrupted: ")
	require.Regexp(t, ` barrier +2 +0 +dissemination +[0-9.]+ `, printed)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var report survey.Report
	require.NoError(t, json.Unmarshal(text, &report))
	require.True(t, report.Interrupted)
	require.Len(t, report.Results, 2)
	for _, r := range report.Results {
		require.NotEmpty(t, r.Weft)
		require.Len(t, r.Bound.Ratios, len(r.Weft))
	}
}
