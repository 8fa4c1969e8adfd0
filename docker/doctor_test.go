package docker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// setting is a container that has all that EFA needs, or would have it but for one
// fault made on purpose.
type setting struct {
	name string
	// flags are those of docker run, behind those that all have.
	flags []string
	// limited says that the low limit of locked memory, which all have, counts for root too.
	limited bool
	// prepare is what the shell does first, and command how doctor is run.
	prepare, command string
	// want are the findings, but for those that are as they should be, found is a part
	// of what was found that is the first of them, and code the exit code.
	want, found string
	code        int
	// fine is a part of what was found that is as it should be.
	fine string
}

const (
	// Where libfabric finds the emulated device, and where it finds only what is there.
	emulated = "with-provider efa weft doctor --json"
	bare     = "weft doctor --json"

	lib = "$(echo /usr/lib/*-linux-gnu)"

	// What weft would take without EFA.
	sockets = ", warning deprecated-provider"
)

// What doctor's exit code says.
const (
	problem  = 3
	warnings = 6
)

// settings is the table of what goes wrong with containers.
func settings(t *testing.T) []setting {
	file := uverbs(t)
	given := []string{"--device", file + ":/dev/infiniband/uverbs0"}
	// Of a device that is not there, a file that can be opened, so that nothing but one
	// fault is found on an instance.
	opens := []string{"--device", "/dev/null:/dev/infiniband/uverbs0"}
	good := instance(t, nil)
	onGood := func(flags ...string) []string { return slices.Concat(good, opens, flags) }
	other := instance(t, map[string]string{
		"class/infiniband_verbs/uverbs1/ibdev":         "mlx5_0",
		"class/infiniband_verbs/uverbs1/device/vendor": "0x15b3",
	})
	return []setting{
		{name: "all as it should be", flags: onGood(), command: emulated},
		{
			name: "emulated device alone", command: emulated,
			want: "note emulated", found: "no EFA device, and libfabric has rdmap0s0",
		},
		// The limits and settings of the container.
		{
			name: "low limit of locked memory", flags: onGood(), limited: true, command: emulated,
			want: "warning memory-lock", found: "the limit is 64 KiB, enough for 0 endpoints", code: warnings,
		},
		{
			name: "user who may open the device", flags: onGood("--user", "65534:65534"), command: emulated,
			want: "warning memory-lock", found: "the limit is 64 KiB, enough for 0 endpoints", code: warnings,
		},
		{
			name: "FI_PROVIDER leaves efa out", flags: onGood("--env", "FI_PROVIDER=tcp"), command: emulated,
			want: "problem filtered", found: "FI_PROVIDER=tcp", code: problem,
		},
		{
			name: "FI_PROVIDER is misspelt", flags: onGood("--env", "FI_PROVIDER=eefa"), command: emulated,
			want: "problem filtered", found: "FI_PROVIDER=eefa; libfabric has no eefa", code: problem,
		},
		{
			name: "a setting that protects memory against fork", flags: onGood("--env", "RDMAV_FORK_SAFE=1"), command: emulated,
			want: "warning fork-safe", found: "RDMAV_FORK_SAFE=1", code: warnings,
		},
		{
			name: "a setting that nobody knows", flags: onGood("--env", "FI_UNIVERSE_SISE=8"), command: emulated,
			want: "note unknown-variable", found: "FI_UNIVERSE_SISE=8",
		},
		{
			name: "a setting that newer providers abort at", flags: onGood("--env", "FI_EFA_MTU_SIZE=4096"), command: emulated,
			want: "warning fatal-variable", found: "FI_EFA_MTU_SIZE=4096", code: warnings,
		},
		{
			name: "RDMA that the device may not have", flags: onGood("--env", "FI_EFA_USE_DEVICE_RDMA=1"), command: emulated,
			want: "warning forced-rdma", found: "FI_EFA_USE_DEVICE_RDMA=1, and a device 0xefa0", code: warnings,
		},
		{
			name: "providers from elsewhere", flags: onGood("--env", "FI_PROVIDER_PATH=/opt/providers"), command: emulated,
			want: "note provider-path", found: "FI_PROVIDER_PATH=/opt/providers",
		},
		{
			name: "crashes leave no trace", flags: onGood("--env", "IPATH_NO_BACKTRACE="), command: emulated,
			want: "note hidden-traces", found: "libinfinipath.so.4",
		},
		// Shared memory.
		{
			name: "small /dev/shm", flags: onGood("--shm-size", "1m"), command: emulated,
			want: "warning small-shared-memory", found: "/dev/shm has 1 MiB", code: warnings,
		},
		{
			name: "process killed while it had an endpoint on shm", flags: onGood(), command: emulated,
			prepare: `weft ping --serve --listen :7466 --provider shm --require >/dev/null &
				until compgen -G "/dev/shm/$!:*" >/dev/null; do kill -0 $!; sleep 0.1; done
				kill -KILL $!; wait $! || true`,
			want: "note stale-names", found: "names of processes that are gone",
		},
		{
			name: "profile of seccomp", flags: onGood("--security-opt", "seccomp="+profile(t)), command: emulated,
			want: "warning no-cross-memory", found: "operation not permitted", code: warnings,
		},
		// The device on its way to the program.
		{name: "no device", command: bare, want: "problem no-device" + sockets, found: "none of them EFA", code: problem},
		{
			name: "no driver on the host", command: bare, flags: instance(t, map[string]string{
				"bus/pci/devices/0000:00:06.0/uevent": "PCI_ID=1D0F:EFA0", "module/efa/version": "",
			}),
			want: "problem no-driver" + sockets, found: "0000:00:06.0 has no driver; the module efa is not loaded", code: problem,
		},
		{
			name: "module ib_uverbs is not there", command: bare, flags: instance(t, without("class/infiniband_verbs/", "module/ib_uverbs/")),
			want: "problem no-verbs" + sockets, found: "no EFA device; the module ib_uverbs is not loaded", code: problem,
		},
		{
			name: "container without the device", flags: good, command: bare,
			want: "problem no-uverbs" + sockets, found: ", and this is a container", code: problem,
		},
		{
			name: "user who may not open the device", flags: slices.Concat(good, given, []string{"--user", "65534:65534"}), command: bare,
			want: "problem permission" + sockets + ", warning memory-lock", found: "permission denied (its permissions are 0600, the user is 65534)", code: problem,
		},
		{
			name: "device that root alone may open", flags: slices.Concat(good, []string{"--device", character(t, 1, 3) + ":/dev/infiniband/uverbs0"}), command: emulated,
			want: "note permission", found: "root may open it, and not everybody (its permissions are 0600, the user is 0)",
		},
		{
			name: "file of the device without the device", flags: slices.Concat(good, []string{"--volume", file + ":/dev/infiniband/uverbs0"}), command: bare,
			want: "problem device-cgroup" + sockets, found: "operation not permitted, whatever its permissions are", code: problem,
		},
		{
			name: "device that has gone away", flags: slices.Concat(good, given), command: bare,
			want: "problem broken-uverbs" + sockets, found: "no such device or address", code: problem,
		},
		{
			name: "another device that was not given", flags: slices.Concat(other, opens), command: bare,
			want: "problem other-device" + sockets, found: "it is no EFA device, and opening it says: no such file or directory", code: problem,
		},
		{
			name: "port that is down", command: bare, flags: slices.Concat(opens, instance(t, map[string]string{
				"class/infiniband/rdmap0s0/ports/1/state": "1: DOWN",
			})),
			want: "problem port-down" + sockets, found: "1: DOWN", code: problem,
		},
		{
			name: "peers that do not answer, as behind a security group", command: emulated,
			flags: slices.Concat(opens, instance(t, map[string]string{
				"class/infiniband/rdmap0s0/ports/1/hw_counters/unresponsive_remote_events": "3",
			})),
			want: "warning no-answers", found: "3 peers that did not answer", code: warnings,
		},
		{
			name: "device that has not sent anything", command: emulated,
			flags: slices.Concat(opens, instance(t, map[string]string{
				"class/infiniband/rdmap0s0/ports/1/hw_counters/tx_pkts": "0",
			})),
			want: "note untried", found: "0 packets sent",
		},
		{
			name: "device that does not count", command: emulated,
			flags: slices.Concat(opens, instance(t, without("class/infiniband/rdmap0s0/ports/1/hw_counters/"))),
			want:  "note unseen", found: "the device does not count its packets",
		},
		{
			name: "FI_EFA_IFACE names a device that is not there", flags: onGood("--env", "FI_EFA_IFACE=rdmap9s9"), command: bare,
			want: "problem filtered-devices" + sockets, found: "FI_EFA_IFACE=rdmap9s9; there are rdmap0s0", code: problem,
		},
		{
			// The device has an address that this container has not.
			name: "endpoint that cannot be opened", flags: onGood("--env", "WEFT_EFA_ADDRESSES=192.0.2.1"), command: emulated,
			want: "problem unopened", found: "fi_enable (efa): Invalid argument", code: problem,
		},
		{
			name: "no driver of rdma-core in the image", flags: onGood(), command: bare,
			prepare: "rm /etc/libibverbs.d/efa.driver",
			want:    "problem no-verbs-plugin" + sockets, found: "there is no efa.driver", code: problem,
		},
		{
			name: "file that is no device of EFA", flags: onGood(), command: bare,
			want: "problem unexplained" + sockets, found: "no EFA device that libfabric could open", code: problem,
		},
		// The library.
		{
			name: "settings at which the provider ends the process", command: emulated,
			flags: onGood("--env", "FI_EFA_USE_DEVICE_RDMA=1", "--env", "WEFT_EFA_RDMA=none"),
			want:  "problem library-died, warning forced-rdma", found: "SIGABRT: abort", code: problem,
		},
		{
			name: "libfabric that is older than the device", command: emulated,
			flags: slices.Concat(opens, instance(t, map[string]string{"bus/pci/devices/0000:00:06.0/device": "0xefa1"})),
			want:  "note library-age", found: "libfabric 1.17",
		},
		{
			// None is to be had; this one says so.
			name: "old libfabric", flags: onGood("--volume", older(t)+":/opt/older.so"),
			command: `env LD_PRELOAD="/usr/local/lib/libweft-efa-emulator.so /opt/older.so" ` + bare,
			want:    "warning old-library", found: "libfabric 1.15", code: warnings,
		},
		{
			// It wants a library of that name as it would any other.
			name: "libfabric without efa", flags: onGood(),
			prepare: `mkdir /opt/other
				for name in fabric efa; do sed s/libefa.so.1/libother.so/g ` + lib + `/lib$name.so.1 >/opt/other/lib$name.so.1; done
				mv /opt/other/libefa.so.1 /opt/other/libother.so`,
			command: "env LD_LIBRARY_PATH=/opt/other " + bare,
			want:    "problem no-provider" + sockets, found: "and no efa", code: problem,
		},
		{
			name: "program without cgo", flags: onGood("--volume", withoutCgo(t)+":/opt/weft"),
			command: "/opt/weft doctor --json",
			want:    "problem no-cgo", found: "without cgo", code: problem,
		},
		{
			name: "two libfabrics in the process", flags: onGood(),
			prepare: "mkdir /opt/other && cp " + lib + "/libfabric.so.1 /opt/other",
			command: `env LD_PRELOAD="/usr/local/lib/libweft-efa-emulator.so ` + lib + `/libfabric.so.1 /opt/other/libfabric.so.1" ` + bare,
			want:    "warning two-libraries", found: "/opt/other/libfabric.so.1", code: warnings,
		},
		{
			name: "the libfabric of AWS is there and another is used", flags: onGood(), command: emulated,
			prepare: "mkdir -p /opt/amazon/efa/lib && cp " + lib + "/libfabric.so.1 /opt/amazon/efa/lib",
			want:    "warning other-library", found: "and there is /opt/amazon/efa/lib/libfabric.so.1", code: warnings,
		},
	}
}

// older has libfabric say that it is version 1.15.
func older(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	source, name := filepath.Join(folder, "older.c"), filepath.Join(folder, "older.so")
	require.NoError(t, os.WriteFile(source, []byte("unsigned fi_version(void) { return 1 << 16 | 15; }\n"), 0o600))
	o := run(t, "gcc", "-shared", "-fPIC", "-o", name, source)
	require.Zero(t, o.code, "%s", o)
	return name
}

// withoutCgo is the command, built so that it cannot call libfabric.
func withoutCgo(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "weft")
	o := run(t, "env", "CGO_ENABLED=0", "go", "build", "-o", name, "./cmd/weft")
	require.Zero(t, o.code, "%s", o)
	return name
}

// profile is one of seccomp that forbids what providers for one host use, as that of older
// engines does.
func profile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "seccomp.json")
	const text = `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
		{"names": ["process_vm_readv", "process_vm_writev"], "action": "SCMP_ACT_ERRNO"}]}`
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// report is what weft doctor --json prints.
type report struct {
	Usable   bool
	Severity string
	Findings []finding
}

type finding struct {
	Kind, Severity string
	Found, Do      string
}

// ofMachine are kinds of findings about the machine, and not about the container. That
// huge pages are missing is seen if it is so; ptrace needs a kernel with Yama.
var ofMachine = []string{"no-huge-pages", "ptrace"}

// hugePages says whether this machine has huge pages for an endpoint.
func hugePages(t *testing.T) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	require.NoError(t, err)
	var free, size int
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "HugePages_Free: %d", &free)
		_, _ = fmt.Sscanf(line, "Hugepagesize: %d", &size)
	}
	return free*size >= 110<<10
}

// Each fault that is made on purpose is found, and nothing else is; and every kind of
// docs/doctor.md is made.
func TestDoctor(t *testing.T) {
	image := "weft-demo:" + tag(t)
	made := strings.Join(ofMachine, " ")
	for _, s := range settings(t) {
		made += " " + strings.ReplaceAll(s.want, ",", "")
		t.Run(s.name, func(t *testing.T) { s.examine(t, image) })
	}
	page, err := os.ReadFile("../docs/doctor.md")
	require.NoError(t, err)
	kinds := 0
	for line := range strings.Lines(string(page)) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok {
			kinds++
			require.Contains(t, strings.Fields(made), kind)
		}
	}
	require.NotZero(t, kinds)
}

// examine runs doctor in the container.
func (s setting) examine(t *testing.T, image string) {
	t.Helper()
	// Engines that may not raise limits may lower them, and root may lock memory all the
	// same. With SYS_PTRACE, all of them let processes read each other's memory.
	args := []string{
		"run", "--rm", "--network", "none", "--ulimit", "memlock=65536:65536", "--shm-size", "8g",
		"--cap-add", "SYS_PTRACE", "--env", "WEFT_EFA_ADDRESSES=127.0.0.1",
	}
	if !s.limited {
		args = append(args, "--cap-add", "IPC_LOCK")
	}
	script := "set -e\n" + s.prepare + "\nexec " + s.command
	o := run(t, "docker", append(append(args, s.flags...), "--entrypoint", "bash", image, "-c", script)...)
	require.Equal(t, s.code, o.code, "%s", o)
	var r report
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &r), "%s", o)
	require.Equal(t, s.code != problem, r.Usable, "%s", o)

	var got, fine []string
	missing := false
	for _, f := range r.Findings {
		if f.Severity == "fine" {
			fine = append(fine, f.Found)
			continue
		}
		if slices.Contains(ofMachine, f.Kind) {
			missing = missing || f.Kind == "no-huge-pages"
			continue
		}
		if len(got) == 0 {
			require.Contains(t, f.Found, s.found)
		}
		require.NotEmpty(t, f.Do, f.Kind)
		got = append(got, f.Severity+" "+f.Kind)
	}
	require.Equal(t, s.want, strings.Join(got, ", "), "%s", o)
	require.Contains(t, strings.Join(fine, "\n"), s.fine)
	require.Equal(t, !hugePages(t), missing, "%s", o)
}
