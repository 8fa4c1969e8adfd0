package main

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
)

// On a terminal a bar says what is measured, and nothing of it stays.
func TestBenchShowsProgressOnTerminal(t *testing.T) {
	_, err := exec.LookPath("script")
	testenv.Need(t, "script", err)
	ctx, stop := context.WithTimeout(t.Context(), generous)
	defer stop()
	p := exec.CommandContext(ctx, "script", "--quiet", "--return", "--command", "weft bench --quick --run '^P7 1 rec'", os.DevNull)
	p.Env = append(os.Environ(), "IPATH_NO_BACKTRACE=1", "SHELL=/bin/sh", "TERM=xterm", "CC=/nowhere/cc")
	out, err := p.Output()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `\rP7 1 receives posted +0% .*\(0/5\)`, string(out))
	require.Regexp(t, `\(4/5\) \[\S+\]\r +\r`, string(out))
	require.NotContains(t, string(out), "[1/1]", "which is for files")
}
