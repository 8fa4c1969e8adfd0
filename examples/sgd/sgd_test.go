package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// The example, as its comment says it is started: the loss falls, and the parameters are
// those of a single rank but for rounding, which the example checks by itself.
func TestTrainingByFourRanks(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "../../cmd/weft", ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
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
			job := exec.Command(filepath.Join(bin, "weft"), "run", "-n", "4", "--",
				filepath.Join(bin, "sgd"), "-check", "-epochs", epochs, "-provider", provider)
			job.Env = append(os.Environ(), "IPATH_NO_BACKTRACE=1")
			out, err := job.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "4 ranks on "+provider)
			found := losses.FindAllStringSubmatch(string(out), -1)
			require.NotEmpty(t, found, "%s", out)
			loss, err := strconv.ParseFloat(found[len(found)-1][1], 64)
			require.NoError(t, err)
			// Who guesses has 0.69.
			require.Less(t, loss, 0.69, "%s", out)
		})
	}
}
