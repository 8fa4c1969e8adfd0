package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/cmd/weft/internal/doctor"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// diagnose runs weft doctor --json with more settings, and returns what it says, of which
// the exit code is the worst.
func diagnose(t *testing.T, c *exec.Cmd, settings ...string) *doctor.Report {
	t.Helper()
	c.Args = append(c.Args, "--json")
	c.Env = append(os.Environ(), "IPATH_NO_BACKTRACE=1")
	c.Env = append(c.Env, settings...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	var r doctor.Report
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &r), "%s%s", stdout.Bytes(), stderr.Bytes())
	worst := doctor.Fine
	for _, f := range r.Findings {
		worst = max(worst, f.Severity)
	}
	require.Equal(t, worst, r.Severity)
	want := map[doctor.Severity]int{doctor.Fine: 0, doctor.Note: 0, doctor.Warning: exitWarnings, doctor.Problem: exitNoProvider}
	require.Equal(t, want[worst], c.ProcessState.ExitCode(), "%+v", r.Findings)
	return &r
}

// foundOf returns what the report says of a kind, which it must.
func foundOf(t *testing.T, r *doctor.Report, kind doctor.Kind) doctor.Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Kind == kind {
			return f
		}
	}
	t.Fatalf("there is no finding %s among %+v", kind, r.Findings)
	return doctor.Finding{}
}

// needBare skips a test on a machine that has EFA, or an emulated device.
func needBare(t *testing.T) {
	t.Helper()
	var err error
	if devices, _ := filepath.Glob("/sys/class/infiniband/*"); len(devices) > 0 || strings.Contains(os.Getenv("LD_PRELOAD"), "efa") {
		err = errors.New("it has RDMA devices")
	}
	testenv.Need(t, "a machine without EFA", err)
}

// Without a device, that is what is found first, and what else is found depends on how
// the command is run.
func TestDoctorWithoutDevice(t *testing.T) {
	needBare(t)
	r := diagnose(t, testprocess.Command(t, "weft", "doctor"))
	require.False(t, r.Usable)
	require.Equal(t, doctor.NoDevice, r.Findings[0].Kind)
	require.Equal(t, doctor.Problem, r.Severity)
	require.Equal(t, "sockets", foundOf(t, r, doctor.DeprecatedProvider).Found)

	r = diagnose(t, testprocess.Command(t, "weft", "doctor"), "FI_PROVIDER=nosuch")
	require.Equal(t, "FI_PROVIDER=nosuch; libfabric has no nosuch", foundOf(t, r, doctor.Filtered).Found)

	r = diagnose(t, testprocess.Command(t, "weft", "doctor"), "FI_UNIVERSE_SISE=8")
	require.Equal(t, "FI_UNIVERSE_SISE=8", foundOf(t, r, doctor.UnknownName).Found)

	text := testprocess.Command(t, "weft", "doctor")
	var stdout, stderr bytes.Buffer
	text.Stdout, text.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	require.ErrorAs(t, text.Run(), &exit)
	require.Equal(t, exitNoProvider, exit.ExitCode())
	require.Regexp(t, `(?s)^EFA cannot be used here\.\n\nproblem: no-device\n  looked at  /sys/bus/pci/devices\n`, stdout.String())
	require.Equal(t, "weft: the worst finding is a problem; docs/doctor.md has each, its cause and its remedy\n", stderr.String())
}

// The settings and limits of another process are looked at by its number.
func TestDoctorOfProcess(t *testing.T) {
	other := testprocess.Command(t, "sleep", "3600")
	other.Env = append(os.Environ(), "FI_PROVIDER=udp")
	require.NoError(t, other.Start())
	defer func() {
		require.NoError(t, other.Process.Kill())
		_ = other.Wait() // it was killed
	}()
	r := diagnose(t, testprocess.Command(t, "weft", "doctor", "--pid", strconv.Itoa(other.Process.Pid)))
	require.Equal(t, "FI_PROVIDER=udp", foundOf(t, r, doctor.Filtered).Found)
	require.Equal(t, doctor.Problem, r.Severity)

	said, err := testprocess.Command(t, "weft", "doctor", "--pid", "999999999").CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, exitFailed, exit.ExitCode())
	require.Equal(t, "weft: there is no process 999999999: stat /proc/999999999: no such file or directory\n", string(said))
}

// A user that is not root, with a small limit of memory that may be locked.
func TestDoctorOfUser(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Need(t, "root", errors.New("only root can start a process of another user"))
	}
	needShell(t)
	const nobody = 65534
	command, _ := weftOf(t, nobody)
	c := command("doctor")
	c.Args = []string{"sh", "-c", `ulimit -l 64 && exec "$0" "$@"`, c.Path, "doctor"}
	c.Path = "/bin/sh"
	r := diagnose(t, c)
	require.Equal(t, "the limit is 64 KiB, enough for 0 endpoints", foundOf(t, r, doctor.MemoryLock).Found)
}

// A setting that leaves only one other provider is found out; on efa, the device can be
// used.
func TestDoctorOnEachProvider(t *testing.T) {
	onEachProvider(t, func(t *testing.T, provider string) {
		if provider != "efa" {
			r := diagnose(t, testprocess.Command(t, "weft", "doctor"), "FI_PROVIDER="+provider)
			require.Equal(t, "FI_PROVIDER="+provider, foundOf(t, r, doctor.Filtered).Found)
			require.Equal(t, doctor.Problem, r.Severity)
			return
		}
		r := diagnose(t, testprocess.Command(t, "weft", "doctor"))
		require.True(t, r.Usable)
		require.Less(t, r.Severity, doctor.Problem, r.Findings)
		r = diagnose(t, testprocess.Command(t, "weft", "doctor"), "FI_PROVIDER=nosuch")
		require.False(t, r.Usable)
		require.Equal(t, doctor.Problem, foundOf(t, r, doctor.Filtered).Severity)
	})
}
