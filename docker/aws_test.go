package docker_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// standIn packs what stands in for the EFA software of AWS, by the name and with the
// folder that the real one has.
func standIn(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "aws-efa-installer-0.tar.gz")
	o := run(t, "tar", "-czf", name, "-C", "docker/testdata", "aws-efa-installer")
	require.Zero(t, o.code, "%s", o)
	return name
}

// The image for AWS has weft with the libfabric below /opt/amazon/efa, and no other, and
// its efa provider is what weft uses. The libfabric is Debian's here.
func TestImageForAWS(t *testing.T) {
	image := "weft-aws:" + tag(t)
	t.Setenv("EFA_INSTALLER", standIn(t))
	o := run(t, "scripts/docker-images", "aws")
	require.Zero(t, o.code, "%s", o)
	t.Cleanup(func() {
		o := run(t, "scripts/docker-images", "--remove", "aws")
		require.Zero(t, o.code, "%s", o)
	})

	const libfabric = "/opt/amazon/efa/lib/libfabric.so.1"
	inImage := func(script string) string {
		return docker(t, "run", "--rm", "--network", "none", "--entrypoint", "bash", image, "-c", script)
	}
	require.Contains(t, inImage(`ldd "$(command -v weft)"`), "libfabric.so.1 => "+libfabric)
	require.Contains(t, inImage(`ldd "$(command -v sgd)"`), "libfabric.so.1 => "+libfabric)
	require.Equal(t, "/opt/amazon/efa/bin/fi_info", inImage("command -v fi_info"))
	require.Empty(t, inImage("find /usr -name 'libfabric.so*'"))
	require.Empty(t, inImage("find /tmp /var/lib/apt/lists -mindepth 1; type gcc go 2>/dev/null || true"))

	setting{
		// Debian's libfabric brings libinfinipath, which that of AWS does not.
		flags: []string{"--env", "IPATH_NO_BACKTRACE=1"}, command: bare,
		want: "problem no-device" + sockets, found: "none of them EFA", code: problem,
		fine: "libfabric is " + libfabric,
	}.examine(t, image)

	// On a device, as docs/docker.md says it is started, but for the file of the device,
	// and the limit of locked memory, which not all engines may lift.
	device := emulator(t)
	o = run(t, "docker", "run", "--rm", "--network", "host", "--cap-add", "IPC_LOCK", "--shm-size", "4g",
		"--volume", device+":/emulator.so", "--env", "LD_PRELOAD=/emulator.so", "--env", "FI_EFA_ENABLE_SHM_TRANSFER=0",
		image, "info", "--provider", "efa", "--require")
	require.Zero(t, o.code, "%s", o)
	require.Contains(t, o.stdout, "rdmap0s0")
}

// emulator takes the emulated device from the image that has it.
func emulator(t *testing.T) string {
	t.Helper()
	container := unique(t, "emulator")
	docker(t, "create", "--name", container, "weft-demo:"+tag(t))
	removed(t, "container", container)
	name := filepath.Join(t.TempDir(), "emulator.so")
	docker(t, "cp", container+":/usr/local/lib/libweft-efa-emulator.so", name)
	return name
}

// The installer may also come from an address, as AWS gives it out: then it arrives packed.
func TestInstallerFromAnAddress(t *testing.T) {
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(standIn(t)))))
	defer server.Close()
	image := "weft-efa:" + tag(t)
	docker(t, "build", "--target", "efa", "--tag", image,
		"--build-arg", "EFA_INSTALLER="+server.URL+"/aws-efa-installer-0.tar.gz", "docker/aws")
	removed(t, "image", image)
	require.Contains(t, docker(t, "run", "--rm", "--network", "none", image, "fi_info", "--version"), "libfabric: ")
}
