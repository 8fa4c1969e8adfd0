package doctor

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// instance is a machine on which EFA works.
func instance(t *testing.T) (fstest.MapFS, Library) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/instance.txtar")
	require.NoError(t, err)
	root := make(fstest.MapFS)
	for _, f := range archive.Files {
		root[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o666}
	}
	return root, Library{
		Version: Version{2, 1}, Headers: Version{2, 1}, Providers: []string{"efa", "shm", "sockets", "tcp"},
		Variables: []string{"FI_EFA_IFACE", "FI_SOCKETS_PE_WAITTIME", "FI_UNIVERSE_SIZE"},
		Needs:     []string{"libefa.so.1", "libc.so.6"}, Devices: []string{"rdmap0s6-rdm"}, Chosen: "efa",
	}
}

// without is what libfabric says when it has no device of EFA, whatever the reason is.
func without(l *Library) {
	l.Devices, l.Chosen, l.Refusal = nil, "tcp", "fi_getinfo (efa): No data available: no EFA device that libfabric could open"
}

const gone = "\x00gone"

// inNativeOrder are the bytes of a number in memory.
func inNativeOrder(number uint32) string {
	return string(binary.NativeEndian.AppendUint32(nil, number))
}

// otherDevice is another RDMA device beside that of EFA.
var otherDevice = map[string]string{
	"sys/class/infiniband_verbs/uverbs1/ibdev":         "mlx5_0",
	"sys/class/infiniband_verbs/uverbs1/device/vendor": "0x15b3",
}

// threeDevices are two more EFA devices on the machine.
var threeDevices = withFiles(efaDevice(1), efaDevice(2))

// efaDevice is a further EFA device, on which all is as it should be.
func efaDevice(n int) map[string]string {
	slot, verbs, class := fmt.Sprintf("sys/bus/pci/devices/0000:00:0%d.0/", 6+n), fmt.Sprintf("sys/class/infiniband_verbs/uverbs%d/", n), fmt.Sprintf("sys/class/infiniband/rdmap0s%d/ports/1/", 6+n)
	return map[string]string{
		slot + "vendor": "0x1d0f", slot + "device": "0xefa1", slot + "uevent": "DRIVER=efa",
		verbs + "ibdev": fmt.Sprintf("rdmap0s%d", 6+n), verbs + "device/vendor": "0x1d0f",
		fmt.Sprintf("dev/infiniband/uverbs%d", n): "", class + "state": "4: ACTIVE",
		class + "hw_counters/tx_pkts": "1000", class + "hw_counters/rx_pkts": "900", class + "hw_counters/unresponsive_remote_events": "0",
	}
}

// withFiles are files of several sets, of which the later ones count.
func withFiles(sets ...map[string]string) map[string]string {
	all := make(map[string]string)
	for _, files := range sets {
		maps.Copy(all, files)
	}
	return all
}

// Each kind of the catalogue is found on one of these machines.
func TestExamine(t *testing.T) {
	found := make(map[Kind]bool)
	for _, c := range []struct {
		name string
		// files of the machine that are others, and folders that are gone.
		files   map[string]string
		environ string
		library func(l *Library)
		open    map[string]error
		peek    error
		process string
		// want are the kinds and severities of all that is not fine, and found what the
		// first says.
		want   string
		found  string
		usable bool
	}{
		{name: "all is well", usable: true},
		{
			name: "no device", library: without,
			files: map[string]string{"sys/bus/pci/devices/0000:00:06.0": gone, "sys/class/infiniband": gone, "sys/class/infiniband_verbs": gone, "dev/infiniband": gone, "sys/module/efa": gone},
			want:  "problem no-device", found: "1 devices, none of them EFA; the machine is an instance of EC2 of type p4d.24xlarge",
		},
		{
			name: "no instance of EC2", library: without,
			files: map[string]string{"sys/bus/pci/devices": gone, "sys/class/dmi/id/sys_vendor": "QEMU", "sys/class/dmi/id/product_name": "Standard PC"},
			want:  "problem no-device", found: "0 devices, none of them EFA; the machine is no instance of EC2 (QEMU Standard PC)",
		},
		{
			name: "no driver", library: without,
			files: map[string]string{"sys/bus/pci/devices/0000:00:06.0/uevent": "PCI_CLASS=20000", "sys/module/efa": gone, "sys/class/infiniband_verbs": gone, "dev/infiniband": gone},
			want:  "problem no-driver", found: "0000:00:06.0 has no driver; the module efa is not loaded",
		},
		{
			name: "another driver", library: without,
			files: map[string]string{"sys/bus/pci/devices/0000:00:06.0/uevent": "DRIVER=vfio-pci"},
			want:  "problem no-driver", found: "0000:00:06.0 has driver vfio-pci; the module efa is loaded",
		},
		{
			name: "no uverbs module", library: without,
			files: map[string]string{"sys/class/infiniband_verbs": gone, "sys/module/ib_uverbs": gone, "dev/infiniband": gone},
			want:  "problem no-verbs", found: "no EFA device; the module ib_uverbs is not loaded",
		},
		{
			name: "device of another namespace", library: without,
			files: map[string]string{"sys/class/infiniband_verbs/uverbs0": gone},
			want:  "problem no-verbs", found: "no EFA device; the module ib_uverbs is loaded",
		},
		{
			name: "container without the device", library: without,
			files: map[string]string{"dev/infiniband": gone, ".dockerenv": ""},
			open:  map[string]error{"dev/infiniband/uverbs0": fs.ErrNotExist},
			want:  "problem no-uverbs", found: "there is no uverbs0 of rdmap0s6, and this is a container",
		},
		{
			name: "pod without the device", library: without, environ: "KUBERNETES_SERVICE_HOST=10.0.0.1",
			files: map[string]string{"dev/infiniband": gone},
			open:  map[string]error{"dev/infiniband/uverbs0": fs.ErrNotExist},
			want:  "problem no-uverbs", found: "and this is a container",
		},
		{
			name: "no permission", library: without,
			open: map[string]error{"dev/infiniband/uverbs0": &fs.PathError{Op: "open", Path: "/dev/infiniband/uverbs0", Err: syscall.EACCES}},
			want: "problem permission", found: "opening it says: permission denied (its permissions are 0666, the user is 1000)",
		},
		{
			name: "file mounted without the device", library: without,
			open: map[string]error{"dev/infiniband/uverbs0": &fs.PathError{Op: "open", Path: "/dev/infiniband/uverbs0", Err: syscall.EPERM}},
			want: "problem device-cgroup", found: "operation not permitted, whatever its permissions are",
		},
		{
			name: "file of no device", library: without,
			open: map[string]error{"dev/infiniband/uverbs0": syscall.ENXIO},
			want: "problem broken-uverbs", found: "no such device or address",
		},
		{
			// What the others carry is that of other pods.
			name: "pod with one device of three", usable: true, environ: "KUBERNETES_SERVICE_HOST=10.0.0.1",
			files: withFiles(threeDevices, map[string]string{
				"sys/class/infiniband/rdmap0s7/ports/1/hw_counters/tx_pkts": "0", "sys/class/infiniband/rdmap0s8/ports/1/state": "1: DOWN",
			}),
			open: map[string]error{"dev/infiniband/uverbs1": fs.ErrNotExist, "dev/infiniband/uverbs2": fs.ErrNotExist},
			want: "note no-uverbs", found: "there is no uverbs1 of rdmap0s7, uverbs2 of rdmap0s8, and this is a container",
		},
		{
			name: "pod with one device of three, and without a plugin", library: without, environ: "KUBERNETES_SERVICE_HOST=10.0.0.1",
			files: withFiles(threeDevices, map[string]string{"etc/libibverbs.d": gone}),
			open:  map[string]error{"dev/infiniband/uverbs1": fs.ErrNotExist, "dev/infiniband/uverbs2": fs.ErrNotExist},
			want:  "problem no-verbs-plugin, note no-uverbs",
		},
		{
			name: "one device of three without a file, in no container", usable: true, files: threeDevices,
			open: map[string]error{"dev/infiniband/uverbs1": fs.ErrNotExist},
			want: "warning no-uverbs", found: "there is no uverbs1 of rdmap0s7",
		},
		{
			name: "one device of three may be opened", usable: true, files: threeDevices,
			open: map[string]error{"dev/infiniband/uverbs1": syscall.EACCES, "dev/infiniband/uverbs2": syscall.EPERM},
			want: "warning permission, warning device-cgroup", found: "permission denied",
		},
		{
			name: "one device of three is broken", usable: true, files: threeDevices,
			open: map[string]error{"dev/infiniband/uverbs2": syscall.ENXIO}, want: "warning broken-uverbs",
		},
		{
			name: "one device of three is broken, and libfabric offers none", library: without,
			files: withFiles(threeDevices, map[string]string{"etc/libibverbs.d": gone}),
			open:  map[string]error{"dev/infiniband/uverbs2": syscall.ENXIO},
			want:  "problem broken-uverbs, problem no-verbs-plugin",
		},
		{
			name: "one port of three down", usable: true,
			files: withFiles(threeDevices, map[string]string{"sys/class/infiniband/rdmap0s7/ports/1/state": "1: DOWN"}),
			want:  "warning port-down", found: "1: DOWN",
		},
		{
			name:  "the port of the device down that libfabric has first",
			files: withFiles(threeDevices, map[string]string{"sys/class/infiniband/rdmap0s6/ports/1/state": "1: DOWN"}),
			want:  "problem port-down", found: "1: DOWN",
		},
		{
			name: "one device of three has another driver", usable: true,
			files: withFiles(threeDevices, map[string]string{
				"sys/bus/pci/devices/0000:00:07.0/uevent": "DRIVER=vfio-pci", "sys/class/infiniband_verbs/uverbs1": gone,
			}),
			open: map[string]error{"dev/infiniband/uverbs2": syscall.EACCES},
			want: "warning no-driver, warning permission", found: "0000:00:07.0 has driver vfio-pci",
		},
		{
			name: "one device of three has another driver, and that is not why there is none", library: without,
			files: withFiles(threeDevices, map[string]string{
				"sys/bus/pci/devices/0000:00:07.0/uevent": "DRIVER=vfio-pci", "sys/class/infiniband_verbs/uverbs1": gone,
			}),
			open: map[string]error{"dev/infiniband/uverbs0": syscall.EACCES, "dev/infiniband/uverbs2": syscall.EACCES},
			want: "problem permission, problem permission, warning no-driver", found: "permission denied",
		},
		{
			name: "another device cannot be opened", library: without, files: otherDevice,
			open: map[string]error{"dev/infiniband/uverbs1": syscall.EPERM},
			want: "problem other-device", found: "it is no EFA device, and opening it says: operation not permitted",
		},
		{
			name: "another device cannot be opened, and libfabric minds not", files: otherDevice, usable: true,
			open: map[string]error{"dev/infiniband/uverbs1": syscall.EPERM}, want: "warning other-device",
		},
		{
			name: "port down", library: without, files: map[string]string{"sys/class/infiniband/rdmap0s6/ports/1/state": "1: DOWN"},
			want: "problem port-down", found: "1: DOWN",
		},
		{
			name: "no plugin of rdma-core", library: without, files: map[string]string{"etc/libibverbs.d": gone},
			want: "problem no-verbs-plugin",
		},
		{name: "nothing explains it", library: without, want: "problem unexplained", found: "No data available"},
		{
			name: "an endpoint cannot be opened", library: func(l *Library) { l.Failure = "fi_endpoint (efa): Cannot allocate memory" },
			want: "problem unopened", found: "Cannot allocate memory",
		},
		{
			name: "memory lock", files: map[string]string{"proc/self/limits": "Max locked memory         65536                65536                bytes"},
			usable: true, want: "warning memory-lock", found: "the limit is 64 KiB, enough for 0 endpoints",
		},
		{
			name: "memory lock for a few endpoints", files: map[string]string{"proc/self/limits": "Max locked memory         3690987519           unlimited            bytes"},
			usable: true, want: "warning memory-lock", found: "enough for 31 endpoints",
		},
		{
			name: "memory lock for many endpoints", files: map[string]string{"proc/self/limits": "Max locked memory         3690987520           unlimited            bytes"},
			usable: true, want: "note memory-lock", found: "the limit is 3604480 KiB, enough for 32 endpoints",
		},
		{
			name: "memory lock for many endpoints, and one cannot be opened", files: map[string]string{"proc/self/limits": "Max locked memory         3690987520           unlimited            bytes"},
			library: func(l *Library) { l.Failure = "fi_endpoint (efa): Cannot allocate memory" },
			want:    "problem memory-lock", found: "enough for 32 endpoints",
		},
		{
			name: "memory lock stops it", files: map[string]string{"proc/self/limits": "Max locked memory         8388608              unlimited            bytes"},
			library: func(l *Library) { l.Failure = "fi_endpoint (efa): Cannot allocate memory" },
			want:    "problem memory-lock", found: "the limit is 8192 KiB",
		},
		{
			name: "memory lock does not count", usable: true,
			files: map[string]string{
				"proc/self/limits": "Max locked memory         65536                65536                bytes",
				"proc/self/status": "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff",
			},
		},
		{name: "huge pages", usable: true, files: map[string]string{"proc/meminfo": "HugePages_Total: 8\nHugePages_Free: 4\nHugepagesize: 2048 kB"}, want: "note no-huge-pages", found: "4 of 8 huge pages are free"},
		{
			name: "old libfabric", library: func(l *Library) { l.Version = Version{1, 11} }, usable: true,
			want: "warning old-library", found: "libfabric 1.11",
		},
		{name: "libfabric before RDMA", library: func(l *Library) { l.Version = Version{1, 17} }, usable: true, want: "note library-age"},
		{
			name: "built without efa", library: func(l *Library) { without(l); l.Providers, l.Needs = []string{"shm", "tcp"}, []string{"libc.so.6"} },
			want: "problem no-provider", found: "it has shm, tcp, and no efa",
		},
		{
			name:    "before 2.1 it does not list efa without a device",
			library: func(l *Library) { without(l); l.Version, l.Providers = Version{1, 17}, []string{"shm", "tcp"} },
			files:   map[string]string{"sys/bus/pci/devices": gone}, want: "problem no-device",
		},
		{
			name: "efa is a plugin", library: func(l *Library) { without(l); l.Providers, l.Needs = []string{"shm"}, nil },
			files: map[string]string{"sys/bus/pci/devices": gone, "usr/lib/x86_64-linux-gnu/libfabric/libefa-fi.so": ""},
			want:  "problem no-device",
		},
		{
			name: "FI_PROVIDER", environ: "FI_PROVIDER=nosuch", library: func(l *Library) { without(l); l.Providers = nil },
			want: "problem filtered", found: "FI_PROVIDER=nosuch; libfabric has no nosuch",
		},
		{name: "FI_PROVIDER without efa", environ: "FI_PROVIDER=tcp", library: func(l *Library) { without(l); l.Providers = []string{"tcp"} }, want: "problem filtered", found: "FI_PROVIDER=tcp"},
		{name: "FI_PROVIDER negated", environ: "FI_PROVIDER=^shm,EFA", library: without, want: "problem filtered"},
		{name: "FI_PROVIDER that has efa", environ: "FI_PROVIDER=shm,efa", usable: true},
		{name: "FI_EFA_IFACE", environ: "FI_EFA_IFACE=rdmap9s9", library: without, want: "problem filtered-devices", found: "FI_EFA_IFACE=rdmap9s9; there are rdmap0s6"},
		{name: "FI_EFA_IFACE that is empty", environ: "FI_EFA_IFACE=", library: without, want: "problem filtered-devices"},
		{name: "FI_EFA_IFACE that old providers do not know", environ: "FI_EFA_IFACE=rdmap9s9", usable: true},
		{name: "FI_EFA_IFACE that fits", environ: "FI_EFA_IFACE=rdmap9s9,rdmap0s6", usable: true},
		{name: "fatal variable", environ: "FI_EFA_MTU_SIZE=4096", library: func(l *Library) {
			*l = Library{Died: "signal: aborted", Said: "FI_EFA_MTU_SIZE env variable detected!"}
		}, want: "problem library-died, problem fatal-variable", found: "signal: aborted; it said: FI_EFA_MTU_SIZE"},
		{name: "variable that is fatal to others", environ: "FI_EFA_MTU_SIZE=4096", usable: true, want: "warning fatal-variable", found: "FI_EFA_MTU_SIZE=4096"},
		{
			name: "forced RDMA", environ: "FI_EFA_USE_DEVICE_RDMA=1", usable: true,
			files: map[string]string{"sys/bus/pci/devices/0000:00:06.0/device": "0xefa0"}, want: "warning forced-rdma",
		},
		{name: "RDMA that the device has", environ: "FI_EFA_USE_DEVICE_RDMA=1", usable: true},
		{name: "fork", environ: "RDMAV_FORK_SAFE=1", usable: true, want: "warning fork-safe", found: "RDMAV_FORK_SAFE=1"},
		{name: "misspelt variable", environ: "FI_UNIVERSE_SISE=8 FI_UNIVERSE_SIZE=8 FI_LOG_LEVEL=warn FI_CXI_ATS=0", usable: true, want: "note unknown-variable", found: "FI_UNIVERSE_SISE=8"},
		{name: "plugins", environ: "FI_PROVIDER_PATH=/opt/plugins", usable: true, want: "note provider-path", found: "/opt/plugins"},
		{
			name: "two libraries", usable: true, want: "warning two-libraries", found: "/opt/amazon/efa/lib64/libfabric.so.1.27.0 and /usr/lib/libfabric.so.1.19.0",
			files: map[string]string{"proc/self/maps": `7f2b1c000000-7f2b1c100000 r--p 00000000 fe:01 5678 /opt/amazon/efa/lib64/libfabric.so.1.27.0
7f2b1c100000-7f2b1c200000 r-xp 00100000 fe:01 5678 /opt/amazon/efa/lib64/libfabric.so.1
7f2b1d000000-7f2b1d100000 r--p 00000000 fe:01 91011 /usr/lib/libfabric.so.1.19.0`},
		},
		{
			name: "the system's library, and that of AWS", usable: true, want: "warning other-library", found: "the process has /usr/lib/libfabric.so.1.19.0, and there is /opt/amazon/efa/lib64/libfabric.so.1",
			files: map[string]string{"proc/self/maps": "7f2b1d000000-7f2b1d100000 r--p 00000000 fe:01 91011 /usr/lib/libfabric.so.1.19.0"},
		},
		{
			name: "hidden traces", usable: true, want: "note hidden-traces",
			files: map[string]string{"proc/self/maps": "7f2b1d000000-7f2b1d100000 r--p 00000000 fe:01 91012 /usr/lib/libinfinipath.so.4.0"},
		},
		{name: "traces", usable: true, environ: "IPATH_NO_BACKTRACE=1", files: map[string]string{"proc/self/maps": "7f2b1d000000-7f2b1d100000 r--p 00000000 fe:01 91012 /usr/lib/libinfinipath.so.4.0"}},
		{
			name: "deprecated provider", library: func(l *Library) { without(l); l.Chosen = "sockets" },
			files: map[string]string{"sys/bus/pci/devices": gone}, want: "problem no-device, warning deprecated-provider",
		},
		{
			name: "security group", usable: true, files: map[string]string{"sys/class/infiniband/rdmap0s6/ports/1/hw_counters/rx_pkts": "0"},
			want: "warning no-answers", found: "1000 packets sent, 0 received",
		},
		{
			name: "silent peers", usable: true, files: map[string]string{"sys/class/infiniband/rdmap0s6/ports/1/hw_counters/unresponsive_remote_events": "3"},
			want: "warning no-answers", found: "3 peers that did not answer",
		},
		{name: "untried", usable: true, files: map[string]string{"sys/class/infiniband/rdmap0s6/ports/1/hw_counters/tx_pkts": "0"}, want: "note untried"},
		{name: "no counters", usable: true, files: map[string]string{"sys/class/infiniband/rdmap0s6/ports/1/hw_counters": gone}, want: "note unseen"},
		{name: "seccomp", usable: true, peek: syscall.EPERM, want: "warning no-cross-memory", found: "operation not permitted"},
		{name: "ptrace", usable: true, files: map[string]string{"proc/sys/kernel/yama/ptrace_scope": "1"}, want: "warning ptrace", found: "it is 1"},
		{
			name: "ptrace does not count", usable: true,
			files: map[string]string{"proc/sys/kernel/yama/ptrace_scope": "1", "proc/self/status": "CapEff:\t0000000000080000"},
		},
		{
			name: "small shared memory", usable: true, files: map[string]string{"proc/self/mounts": "shm /dev/shm tmpfs rw,size=65536k 0 0"},
			want: "warning small-shared-memory", found: "/dev/shm has 64 MiB, for 96 processors",
		},
		{
			name: "stale names", usable: true, files: map[string]string{"dev/shm/17:0:0": strings.Repeat("x", 1<<20+1), "dev/shm/17:0:1": "x"},
			want: "note stale-names", found: "2 names of processes that are gone, up to 2 MiB: 17:0:0, 17:0:1",
		},
		{
			// As efa has them: named by the address, with the process inside. What is not of
			// an endpoint, or of an unknown layout, is left alone.
			name: "stale names of efa", usable: true,
			files: map[string]string{
				"dev/shm/fe80::8ff:fe2e:f00_0001_1f2e3d4c_0000": "\x04\x00\x01\x00" + inNativeOrder(17) + strings.Repeat("x", 1<<20),
				"dev/shm/fe80::8ff:fe2e:f00_0002_1f2e3d4c_03e8": "\x08\x00\x01\x00" + inNativeOrder(18), "proc/18/status": "Name:\tweft\nState:\tZ (zombie)\n",
				"dev/shm/fe80::8ff:fe2e:f00_0003_1f2e3d4c_0000":  "\x09\x00\x01\x00" + inNativeOrder(19),
				"dev/shm/fe80::8ff:fe2e:f00_0004_1f2e3d4c_0000":  "\x04\x00\x01",
				"dev/shm/fe80::8ff:fe2e:f00_0005_1f2e3d4c_0000":  "\x04\x00\x01\x00" + inNativeOrder(4242),
				"dev/shm/fe80::8ff:fe2e:f00_0006_1f2e3d4c_00001": "",
				"dev/shm/17:0:0:0123456789abcdef":                "x",
				"dev/shm/17:others":                              "x", "dev/shm/sem.17": "x",
				"proc/4242/maps": "",
			},
			want: "note stale-names", found: "3 names of processes that are gone, up to 2 MiB: 17:0:0:0123456789abcdef, fe80::8ff:fe2e:f00_0001_1f2e3d4c_0000, fe80::8ff:fe2e:f00_0002_1f2e3d4c_03e8",
		},
		{
			// Another user's process lives there, and is not shown.
			name: "names of processes that are not shown", usable: true,
			files: map[string]string{"dev/shm/17:0:0": "x", "proc/self/mounts": "proc /proc proc rw 0 0\nproc /proc proc rw,hidepid=invisible 0 0\ntmpfs /dev/shm tmpfs rw,size=8g 0 0"},
			want:  "note unseen", found: "1 names of processes that are gone, or of other users: /proc does not show those (hidepid=invisible)",
		},
		{
			name: "stale names, seen by root", usable: true,
			files: map[string]string{
				"dev/shm/17:0:0": "x", "proc/self/status": "CapEff:\t000001ffffffffff",
				"proc/self/mounts": "proc /proc proc rw,hidepid=2 0 0\ntmpfs /dev/shm tmpfs rw,size=8388608k 0 0",
			},
			want: "note stale-names",
		},
		{
			name: "emulated", usable: true, library: func(l *Library) { l.Devices = []string{"rdmap0s0-rdm"} },
			files: map[string]string{"sys/bus/pci/devices": gone}, want: "note emulated",
		},
		{
			name: "without cgo", library: func(l *Library) { *l = Library{Missing: "this program was built without cgo"} },
			want: "problem no-cgo", found: "this program was built without cgo",
		},
		{
			name: "another process", process: "4242", usable: true,
			files: map[string]string{
				"proc/4242/limits": "Max locked memory         65536                65536                bytes", "proc/4242/environ": "RDMAV_FORK_SAFE=1\x00",
				"proc/4242/maps": "", "proc/4242/mounts": "",
			},
			want: "warning fork-safe, warning memory-lock",
		},
		{
			name: "another process that may not", process: "4242", want: "problem filtered", found: "FI_PROVIDER=tcp",
			files: map[string]string{"proc/4242/limits": "Max locked memory unlimited unlimited bytes", "proc/4242/environ": "FI_PROVIDER=tcp\x00", "proc/4242/maps": ""},
		},
		{name: "another user's process", process: "4242", usable: true, want: "note unseen, note unseen, note unseen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, library := instance(t)
			root["proc/self/environ"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(c.environ, " ", "\x00") + "\x00")}
			for name, content := range c.files {
				if content != gone {
					root[name] = &fstest.MapFile{Data: []byte(content + "\n"), Mode: 0o666}
				}
			}
			for name, content := range c.files {
				if content != gone {
					continue
				}
				for file := range root {
					if file == name || strings.HasPrefix(file, name+"/") {
						delete(root, file)
					}
				}
			}
			if c.library != nil {
				c.library(&library)
			}
			r := Examine(System{Root: root, Process: c.process, Library: library, Open: func(name string) error { return c.open[name] }, Peek: func() error { return c.peek }})
			var got []string
			for _, f := range r.Findings {
				found[f.Kind] = true
				require.NotEmpty(t, f.Looked)
				require.NotEmpty(t, f.Found, f.Kind)
				if f.Severity != Fine {
					require.NotEmpty(t, f.Do, f.Kind)
					got = append(got, f.Severity.String()+" "+string(f.Kind))
				}
			}
			require.Equal(t, c.want, strings.Join(got, ", "))
			require.Equal(t, c.usable, r.Usable)
			require.NotEqual(t, r.Usable, r.Severity == Problem)
			if c.want != "" {
				require.Contains(t, r.Findings[0].Found, c.found)
				require.Equal(t, r.Findings[0].Severity, r.Severity)
			}
		})
	}
	for kind := range catalogue {
		require.True(t, found[kind], "%s is found nowhere", kind)
	}
}

// What is said of a machine is the same whatever it is read from.
func TestExamineFolder(t *testing.T) {
	root, library := instance(t)
	root["proc/self/environ"] = &fstest.MapFile{}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, root))
	open := func(name string) error {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
		if err == nil {
			err = f.Close()
		}
		return err
	}
	want := Examine(System{Root: root, Library: library, Open: open})
	require.Equal(t, want, Examine(System{Root: os.DirFS(dir), Library: library, Open: open}))
	require.NoError(t, os.Remove(filepath.Join(dir, "dev/infiniband/uverbs0")))
	without(&library)
	r := Examine(System{Root: os.DirFS(dir), Library: library, Open: open})
	require.Equal(t, NoUverbs, r.Findings[0].Kind)
}

// Root may open what the program's user may not: with sudo, not all looks well.
func TestOpenedByRootAlone(t *testing.T) {
	for user, want := range map[string]Severity{"0": Note, "1000": Fine} {
		root, library := instance(t)
		root["proc/self/environ"] = &fstest.MapFile{}
		root["proc/self/status"] = &fstest.MapFile{Data: []byte("Uid:\t" + user + "\t0\t0\t0\n")}
		root["dev/infiniband/uverbs0"].Mode = 0o660
		r := Examine(System{Root: root, Library: library, Open: func(string) error { return nil }})
		require.True(t, r.Usable)
		require.Equal(t, want, r.Severity)
		if want == Note {
			require.Equal(t, Permission, r.Findings[0].Kind)
			require.Equal(t, "root may open it, and not everybody (its permissions are 0660, the user is 0)", r.Findings[0].Found)
		}
	}
}
