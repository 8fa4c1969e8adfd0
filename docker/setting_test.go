package docker_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// setting is a container that cannot use EFA, for a reason made on purpose.
type setting struct {
	name string
	// flags are those of docker run, command what runs in the container.
	flags   []string
	command []string
	// code is what it ends with, and says a part of what it prints.
	code int
	says string
	// doctor is the kind of finding that weft doctor must have there (its --json), for
	// the test that is to look for it.
	doctor string
}

// nothing is what libfabric says in all of these containers, whatever the reason.
var nothing = []string{"weft", "info", "--provider", "efa", "--require"}

// settings is the table of what goes wrong with containers. What is said of each now is
// what weft info, or the container itself, can see; weft doctor tells all of them apart.
func settings(t *testing.T) []setting {
	device := uverbs(t)
	return []setting{
		{
			name:    "no device",
			command: nothing, code: 3, says: "no EFA device that libfabric could open",
			doctor: "no-device",
		}, {
			name:    "FI_PROVIDER leaves efa out",
			flags:   []string{"--env", "FI_PROVIDER=tcp"},
			command: nothing, code: 3, says: "FI_PROVIDER=tcp is set",
			doctor: "filtered",
		}, {
			name:    "low limit of locked memory",
			flags:   []string{"--ulimit", "memlock=65536:65536"},
			command: []string{"bash", "-c", "ulimit -l"}, says: "64\n",
			doctor: "memory-lock",
		}, {
			name:    "user who may not open the device",
			flags:   []string{"--user", "65534:65534", "--device", device + ":/dev/infiniband/uverbs0"},
			command: []string{"bash", "-c", "exec 3<>/dev/infiniband/uverbs0"}, code: 1, says: "Permission denied",
			doctor: "permission",
		}, {
			name:    "file of the device without the device",
			flags:   []string{"--volume", device + ":/dev/infiniband/uverbs0"},
			command: []string{"bash", "-c", "exec 3<>/dev/infiniband/uverbs0"}, code: 1, says: "Operation not permitted",
			doctor: "device-cgroup",
		}, {
			name:    "small /dev/shm",
			flags:   []string{"--shm-size", "1m"},
			command: []string{"bash", "-c", "df --output=size -k /dev/shm"}, says: "1024\n",
			doctor: "small-shared-memory",
		},
	}
}

// uverbs makes a file such as udev makes for an EFA, which only its owner may open.
// There is no device behind it.
func uverbs(t *testing.T) string {
	t.Helper()
	const major, minor = 231, 192 // those of /dev/infiniband/uverbs0
	name := filepath.Join(t.TempDir(), "uverbs0")
	err := unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(major, minor)))
	require.NoError(t, err, "making the file of a device takes root")
	require.NoError(t, os.Chmod(name, 0o600))
	return name
}

func TestSettings(t *testing.T) {
	image := "weft-demo:" + tag(t)
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			args := append([]string{"run", "--rm", "--network", "none"}, s.flags...)
			o := run(t, "docker", append(append(args, image), s.command...)...)
			require.Equal(t, s.code, o.code, "%s", o)
			require.Contains(t, o.stdout+o.stderr, s.says)
		})
	}
}
