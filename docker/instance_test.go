package docker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// sysOfInstance is what /sys has on an instance of EC2 with an EFA, as far as anybody
// looks. The devices themselves cannot be made: they are hardware and a kernel module.
var sysOfInstance = map[string]string{
	"bus/pci/devices/0000:00:06.0/vendor":                                      "0x1d0f",
	"bus/pci/devices/0000:00:06.0/device":                                      "0xefa0",
	"bus/pci/devices/0000:00:06.0/uevent":                                      "DRIVER=efa",
	"devices/system/cpu/online":                                                "0-1",
	"module/efa/version":                                                       "2.13.0g",
	"module/ib_uverbs/refcnt":                                                  "1",
	"class/infiniband_verbs/abi_version":                                       "6",
	"class/infiniband_verbs/uverbs0/abi_version":                               "1",
	"class/infiniband_verbs/uverbs0/ibdev":                                     "rdmap0s0",
	"class/infiniband_verbs/uverbs0/dev":                                       "231:192",
	"class/infiniband_verbs/uverbs0/device/vendor":                             "0x1d0f",
	"class/infiniband_verbs/uverbs0/device/device":                             "0xefa0",
	"class/infiniband_verbs/uverbs0/device/modalias":                           "pci:v00001D0Fd0000EFA0sv00001D0Fsd0000EFA0bc02sc00i00",
	"class/infiniband/rdmap0s0/node_type":                                      "7: <unknown>",
	"class/infiniband/rdmap0s0/ports/1/state":                                  "4: ACTIVE",
	"class/infiniband/rdmap0s0/ports/1/hw_counters/tx_pkts":                    "1000",
	"class/infiniband/rdmap0s0/ports/1/hw_counters/rx_pkts":                    "900",
	"class/infiniband/rdmap0s0/ports/1/hw_counters/unresponsive_remote_events": "0",
}

// instance is the flag for a container that has the /sys of an instance, but for what
// changes says; what is empty there, is not there.
func instance(t *testing.T, changes map[string]string) []string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	// Where the engine mounts control groups.
	require.NoError(t, os.MkdirAll(filepath.Join(root, "fs/cgroup"), 0o755))
	put := func(name, text string) {
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text+"\n"), 0o644))
	}
	for name, text := range sysOfInstance {
		if _, changed := changes[name]; !changed {
			put(name, text)
		}
	}
	for name, text := range changes {
		if text != "" {
			put(name, text)
		}
	}
	return []string{"--volume", root + ":/sys:ro"}
}

// without are the changes for an instance that has nothing below these folders.
func without(folders ...string) map[string]string {
	changes := make(map[string]string)
	for name := range sysOfInstance {
		for _, folder := range folders {
			if strings.HasPrefix(name, folder) {
				changes[name] = ""
			}
		}
	}
	return changes
}

// uverbs makes a file such as udev makes for an EFA, which only its owner may open.
// There is no device behind it.
func uverbs(t *testing.T) string {
	t.Helper()
	return character(t, 231, 192) // the numbers of /dev/infiniband/uverbs0
}

// character makes the file of a device that only its owner may open.
func character(t *testing.T, major, minor uint32) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "uverbs0")
	err := unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(major, minor)))
	require.NoError(t, err, "making the file of a device takes root")
	require.NoError(t, os.Chmod(name, 0o600))
	return name
}
