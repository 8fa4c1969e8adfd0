package docker_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// composeCommand is the compose tool that there is, as a plugin or by itself.
func composeCommand() []string {
	if exec.Command("docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	return []string{"docker-compose"}
}

func TestComposeFilesAreValid(t *testing.T) {
	for _, files := range [][]string{
		{"docker/compose.yaml"},
		{"docker/compose.yaml", "docker/compose.faults.yaml"},
		{"docker/compose.job.yaml"},
	} {
		args := composeCommand()
		for _, file := range files {
			args = append(args, "--file", file)
		}
		args = append(args, "config", "--quiet")
		o := run(t, args[0], args[1:]...)
		require.Zero(t, o.code, "%s", o)
		require.Empty(t, o.stdout+o.stderr)
	}
}

// kubernetes is the version whose schemas the manifests are checked against, the newest
// that the checker brings along.
const kubernetes = "1.30"

// checked runs kubectl-validate, which checks as the API server would.
func checked(t *testing.T, path string) outcome {
	return run(t, "go", "-C", "docker", "tool", "kubectl-validate", "--version", kubernetes, path)
}

func TestKubernetesManifestsAreValid(t *testing.T) {
	folder, err := filepath.Abs("kubernetes")
	require.NoError(t, err)
	o := checked(t, folder)
	require.Zero(t, o.code, "%s", o)

	// It would have been found.
	right, err := os.ReadFile("kubernetes/job.yaml")
	require.NoError(t, err)
	wrong := strings.Replace(string(right), "completionMode:", "completionModus:", 1)
	require.NotEqual(t, string(right), wrong)
	file := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(file, []byte(wrong), 0o600))
	o = checked(t, file)
	require.NotZero(t, o.code)
	require.Contains(t, o.stdout+o.stderr, "completionModus")
}

func TestScriptsAreBash(t *testing.T) {
	demo, err := filepath.Glob("demo/*")
	require.NoError(t, err)
	jobs, err := filepath.Glob("slurm/*.sbatch")
	require.NoError(t, err)
	require.NotEmpty(t, demo)
	require.NotEmpty(t, jobs)
	for _, script := range append(demo, jobs...) {
		o := run(t, "bash", "-n", filepath.Join("docker", script))
		require.Zero(t, o.code, "%s", o)
	}
}
