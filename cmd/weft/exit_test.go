package main

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/cmd/weft/internal/doctor"
	"github.com/weft-go/weft/cmd/weft/internal/launch"
)

// The codes of processes that weft bench has started are not its own.
func TestExitCodes(t *testing.T) {
	started := exec.Command("weft", "nosuch").Run()
	var exit *exec.ExitError
	require.ErrorAs(t, started, &exit)
	require.Equal(t, exitUsage, exit.ExitCode())
	side := fmt.Errorf("side 1: %w", started)
	for code, err := range map[int]error{
		exitFailed:      side,
		exitInterrupted: errors.Join(errInterrupted, side),
		exitNoProvider:  errors.Join(side, &diagnosis{doctor.Problem}),
		exitWarnings:    &diagnosis{doctor.Warning},
		124:             &launch.TimeoutError{},
		126:             &launch.StartError{Err: errors.New("not now")},
		127:             &launch.StartError{Err: exec.ErrNotFound},
		exitUsage:       &launch.RankError{State: exit.ProcessState},
	} {
		require.Equal(t, code, exitCode(err), "%v", err)
	}
}
