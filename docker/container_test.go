package docker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// limit is for one command; the machine may be slow.
const limit = 15 * time.Minute

// tag is that of the images under test, which scripts/docker-images has built.
func tag(t *testing.T) string {
	t.Helper()
	tag := os.Getenv("WEFT_TAG")
	require.NotEmpty(t, tag, "WEFT_TAG names the images to test: make docker-test builds them and sets it")
	return tag
}

// outcome is how a command ended.
type outcome struct {
	code           int
	stdout, stderr string
}

func (o outcome) String() string {
	return fmt.Sprintf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
}

// run runs a command in the root of the repository.
func run(t *testing.T, name string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = ".."
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// docker runs a command of the engine's that must work, and returns what it prints.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	o := run(t, "docker", args...)
	require.Zero(t, o.code, "docker %s: %s", strings.Join(args, " "), o)
	return strings.TrimSpace(o.stdout)
}

// removed has containers or networks of this name removed at the end of the test.
func removed(t *testing.T, what, name string) {
	t.Cleanup(func() {
		args := []string{what, "rm", name}
		if what == "container" {
			args = []string{what, "rm", "--force", name}
		}
		if o := run(t, "docker", args...); o.code != 0 {
			t.Errorf("docker %s: %s", strings.Join(args, " "), o)
		}
	})
}

// unique is a name that nothing else of the engine's has.
func unique(t *testing.T, what string) string {
	return fmt.Sprintf("weft-%s-%d", what, os.Getpid())
}
