// What is tested is C, under sanitizers of its own: the race detector has nothing to
// see in it.
//go:build !race

package emulator_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
)

// What libfabric itself does wrong is listed in testdata/libfabric.supp.
func TestValgrind(t *testing.T) {
	_, err := exec.LookPath("valgrind")
	testenv.Need(t, "valgrind", err)
	suppressions, err := filepath.Abs("testdata/libfabric.supp")
	require.NoError(t, err)
	valgrind := []string{
		"valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=definite",
		"--errors-for-leak-kinds=definite", "--suppressions=" + suppressions,
	}
	for _, c := range []struct {
		name string
		env  []string
	}{
		{"plain", nil},
		{"under faults", seeded(faulty)},
	} {
		t.Run(c.name, func(t *testing.T) {
			pingPong(t, c.env, [2][]string{valgrind, valgrind}, "127.0.0.1", "-e", "rdm", "-m", "tagged", "-I", "5")
		})
	}
}
