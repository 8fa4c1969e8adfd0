package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// The example, as its comment says it is started: the loss falls, and the parameters are
// those of a single rank but for rounding, which the example checks by itself.
func TestTrainingByFourRanks(t *testing.T) {
	bin := build(t, "../../cmd/weft", ".")
	losses := regexp.MustCompile(`loss (\S+)`)
	for _, s := range fabrictest.Settings() {
		provider := s.Provider
		if provider == "" {
			continue
		}
		t.Run(provider, func(t *testing.T) {
			fabrictest.NewBed(t, s)
			epochs := "100"
			if provider == "sockets" {
				// Its threads share two cores with those of three more ranks.
				epochs = "10"
			}
			job := testprocess.Command(t, filepath.Join(bin, "weft"), "run", "-n", "4", "--",
				filepath.Join(bin, "sgd"), "-check", "-epochs", epochs, "-provider", provider)
			out := output(t, job, provider)
			found := losses.FindAllStringSubmatch(out, -1)
			require.GreaterOrEqual(t, len(found), 2, "%s", out)
			first, err := strconv.ParseFloat(found[0][1], 64)
			require.NoError(t, err)
			loss, err := strconv.ParseFloat(found[len(found)-1][1], 64)
			require.NoError(t, err)
			require.Less(t, loss, first, "%s", out)
			// Who guesses has 0.69.
			require.Less(t, loss, 0.69, "%s", out)
		})
	}
}

// A launcher that is not weft's: the ranks know themselves by its variables, and meet where
// WEFT_STORE says.
func TestTrainingByMpirun(t *testing.T) {
	version, err := exec.Command("mpirun", "--version").Output()
	if err == nil && !strings.Contains(string(version), "Open MPI") {
		err = fmt.Errorf("mpirun is another one: %s", version)
	}
	testenv.Need(t, "Open MPI", err)
	const provider = "tcp"
	if !slices.Contains(testenv.Providers(), provider) {
		return // launchers are the same on the others
	}
	fabrictest.NewBed(t, fabrictest.Setting{Provider: provider})
	// Its ranks end with it.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	job := exec.CommandContext(ctx, "mpirun", "-n", "4", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none",
		"-x", "WEFT_STORE=file://"+t.TempDir(), filepath.Join(build(t, "."), "sgd"), "-check", "-epochs", "20", "-provider", provider)
	job.Cancel = func() error { return job.Process.Signal(os.Interrupt) }
	job.WaitDelay = 10 * time.Second
	output(t, job, provider)
}

// build builds commands, and returns the folder that they are in.
func build(t *testing.T, packages ...string) string {
	t.Helper()
	bin := t.TempDir()
	out, err := exec.Command("go", append([]string{"build", "-o", bin}, packages...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return bin
}

// output is what a job has said that has ended well.
func output(t *testing.T, job *exec.Cmd, provider string) string {
	t.Helper()
	job.Env = append(os.Environ(), "IPATH_NO_BACKTRACE=1")
	out, err := job.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "4 ranks on "+provider)
	return string(out)
}
