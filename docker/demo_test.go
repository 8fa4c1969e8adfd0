package docker_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// left lists what containers, networks and volumes of compose projects there are.
func left(t *testing.T) []string {
	const project = "label=com.docker.compose.project"
	return []string{
		docker(t, "container", "ls", "--all", "--quiet", "--filter", project),
		docker(t, "network", "ls", "--quiet", "--filter", project),
		docker(t, "volume", "ls", "--quiet", "--filter", project),
	}
}

// The two hosts and the job, as scripts/docker-demo runs and checks them: exit codes,
// checksums and sums.
func TestDemo(t *testing.T) {
	tag(t)
	before := left(t)
	for _, args := range [][]string{nil, {"--faults"}} {
		o := run(t, "scripts/docker-demo", args...)
		t.Log(o.stdout)
		require.Zero(t, o.code, "%v: %s", args, o)
		require.Equal(t, before, left(t), "it left something behind")
	}
}

// The slim image holds the command and what it needs to run, and nothing to build with.
func TestSlimImage(t *testing.T) {
	image := "weft:" + tag(t)
	o := run(t, "docker", "run", "--rm", "--network", "none", image, "info")
	require.Zero(t, o.code, "%s", o)
	require.Contains(t, o.stdout, "sockets   yes")
	o = run(t, "docker", "run", "--rm", "--network", "none", "--entrypoint", "bash", image, "-c", "type gcc go make sgd host")
	require.NotZero(t, o.code)
	require.Empty(t, o.stdout)
}
