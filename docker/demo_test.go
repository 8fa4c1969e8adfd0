package docker_test

import (
	"path/filepath"
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

// The development image has what weft is built with, and the emulated device, which libfabric
// finds. The tree is mounted, as anybody would do it.
func TestDevelopmentImage(t *testing.T) {
	image := "weft-dev:" + tag(t)
	tree, err := filepath.Abs("..")
	require.NoError(t, err)
	device := run(t, "docker", "run", "--rm", "--network", "none", "--env", "LD_PRELOAD=/usr/local/lib/libweft-efa-emulator.so",
		"--env", "FI_EFA_ENABLE_SHM_TRANSFER=0", image, "fi_info", "-p", "efa", "-t", "FI_EP_RDM")
	require.Zero(t, device.code, "%s", device)
	require.Contains(t, device.stdout, "provider: efa")
	build := run(t, "docker", "run", "--rm", "--network", "none", "--volume", tree+":/weft:ro", image,
		"bash", "-c", "go version && pkg-config --modversion libfabric && type gcc make valgrind strace && make -C emulator OUT=/tmp/device")
	require.Zero(t, build.code, "%s", build)
	require.Contains(t, build.stdout, "go version go1.26")
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
