// What is tested is C, under sanitizers of its own: the race detector has nothing to
// see in it.
//go:build !race

package emulator_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-go/weft/internal/testenv"
)

// limit is generous: the machine may have other things to do.
const limit = 4 * time.Minute

// built is where the device lies, built by the script that everybody uses.
var built = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	script := exec.CommandContext(ctx, "../scripts/with-efa", "printenv", "LD_PRELOAD")
	script.Stderr = new(strings.Builder)
	out, err := script.Output()
	if err != nil {
		return "", fmt.Errorf("scripts/with-efa: %w\n%s", err, script.Stderr)
	}
	library, _, _ := strings.Cut(strings.TrimSpace(string(out)), ":")
	return library, nil
})

func device(t *testing.T) string {
	t.Helper()
	library, err := built()
	testenv.Need(t, "emulator", err)
	return library
}

// builtTest is a program of tests/, with the sanitizers.
func builtTest(t *testing.T, name string) string {
	t.Helper()
	folder := filepath.Dir(device(t))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "make", "--silent", "OUT="+folder, filepath.Join(folder, name)).CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", name, err, out)
	}
	return filepath.Join(folder, name)
}

// faulty is what the device shall do to packets: most are reordered, many
// receivers are not ready, and some packets are lost.
var faulty = []string{"WEFT_EFA_REORDER=60", "WEFT_EFA_RNR=20", "WEFT_EFA_DROP=3"}

// seeded has the same seed for each run, unless the one of a run that failed is
// to be tried again.
func seeded(faults []string) []string {
	if os.Getenv("WEFT_EFA_SEED") != "" {
		return faults
	}
	return append([]string{"WEFT_EFA_SEED=1"}, faults...)
}
