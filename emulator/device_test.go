// What is tested is C, under sanitizers of its own: the race detector has nothing to
// see in it.
//go:build !race

package emulator_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests of the device itself are in C; each of these runs a program of them,
// with the address and undefined behaviour sanitizers but for the one that forks.

func runTest(t *testing.T, name string, env ...string) {
	t.Helper()
	program := builtTest(t, name)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	temporary := t.TempDir()
	run := exec.CommandContext(ctx, program)
	run.Env = append(os.Environ(), env...)
	run.Env = append(run.Env, "TMPDIR="+temporary, "WEFT_EFA_COUNTERS=1")
	out, err := run.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	requireEmpty(t, temporary)
}

// requireEmpty asserts that the device left nothing behind.
func requireEmpty(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestParts(t *testing.T) {
	runTest(t, "parts_test")
}

// What weft says of libibverbs without its headers is what they say.
func TestLayouts(t *testing.T) {
	runTest(t, "layout_test")
}

func TestWrongUseGetsTheErrorOfHardware(t *testing.T) {
	runTest(t, "misuse_test")
}

func TestSRD(t *testing.T) {
	runTest(t, "srd_test")
}

func TestFork(t *testing.T) {
	runTest(t, "fork_test")
}

func TestSRDUnderFaults(t *testing.T) {
	for i, c := range []struct {
		name string
		env  []string
	}{
		{"reordered, not ready, lost", faulty},
		{"everything reordered, slow", []string{"WEFT_EFA_REORDER=100", "WEFT_EFA_REORDER_US=3000", "WEFT_EFA_LATENCY_US=300"}},
		{"a fifth lost", []string{"WEFT_EFA_DROP=20", "WEFT_EFA_TIMEOUT_MS=6000"}},
		{"most not ready", []string{"WEFT_EFA_RNR=70"}},
	} {
		if testing.Short() && i > 1 {
			break // each waits for packets that come late
		}
		t.Run(c.name, func(t *testing.T) {
			runTest(t, "srd_test", seeded(c.env)...)
		})
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	library := device(t)
	for setting, want := range map[string]string{
		"WEFT_EFA_DROP=much":         "per cent, from 0 to 100",
		"WEFT_EFA_DROP=101":          "per cent, from 0 to 100",
		"WEFT_EFA_DEVICES=17":        "a whole number from 1 to 16",
		"WEFT_EFA_SEED=-1":           "a whole number",
		"WEFT_EFA_ADDRESSES=nowhere": "IPv4 addresses of this machine, or names of its interfaces",
		"WEFT_EFA_RDMA=maybe":        "write (reads and writes), read (only those) or none",
	} {
		t.Run(setting, func(t *testing.T) {
			info := exec.Command("fi_info", "-p", "efa")
			info.Env = append(os.Environ(), "LD_PRELOAD="+library, "IPATH_NO_BACKTRACE=1", setting)
			out, err := info.CombinedOutput()
			require.Error(t, err, "%s", out)
			require.Contains(t, string(out), "weft-efa: "+setting+": want ")
			require.Contains(t, string(out), want)
		})
	}
}
