package doctor

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// read returns a file's text without the white space around it; ok is false if it
// cannot be read.
func (x *examination) read(name string) (text string, ok bool) {
	b, err := fs.ReadFile(x.Root, name)
	return strings.TrimSpace(string(b)), err == nil
}

// list returns the names in a folder, none if there is no such folder.
func (x *examination) list(name string) []string {
	entries, err := fs.ReadDir(x.Root, name)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (x *examination) exists(name string) bool {
	_, err := fs.Stat(x.Root, name)
	return err == nil
}

// ofProcess is the path of what /proc says of the process.
func (x *examination) ofProcess(name string) string { return path.Join("proc", x.Process, name) }

// readEnvironment takes in the settings that the process was started with.
func (x *examination) readEnvironment() {
	x.environ = make(map[string]string)
	text, ok := x.read(x.ofProcess("environ"))
	if !ok {
		x.find(Unseen, "/"+x.ofProcess("environ"), "the settings of the process cannot be read")
	}
	for setting := range strings.SplitSeq(text, "\x00") {
		if name, value, ok := strings.Cut(setting, "="); ok {
			x.environ[name] = value
		}
	}
}

// status returns a line of the process's status.
func (x *examination) status(key string) string { return x.statusIn(x.ofProcess("status"), key) }

func (x *examination) statusIn(file, key string) string {
	text, _ := x.read(file)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok && name == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// The numbers of capabilities that lift limits.
const (
	capabilityLock   = 14 // CAP_IPC_LOCK
	capabilityPtrace = 19 // CAP_SYS_PTRACE
)

// can says whether the process has a capability.
func (x *examination) can(capability int) bool { return has(x.status("CapEff"), capability) }

// ownCapability says whether the one that looks has it.
func (x *examination) ownCapability(capability int) bool {
	return has(x.statusIn("proc/self/status", "CapEff"), capability)
}

// has says whether a capability is in a set as the kernel prints it.
func has(set string, capability int) bool {
	bits, err := strconv.ParseUint(set, 16, 64)
	return err == nil && bits&(1<<capability) != 0
}

// inContainer says whether this looks like a container.
func (x *examination) inContainer() bool {
	_, kubernetes := x.environ["KUBERNETES_SERVICE_HOST"]
	_, container := x.environ["container"]
	return kubernetes || container || x.exists(".dockerenv") || x.exists("run/.containerenv")
}

// libraries are the files that the process has mapped whose name begins with a prefix.
func (x *examination) libraries(prefix string) (paths []string, ok bool) {
	text, ok := x.read(x.ofProcess("maps"))
	seen := make(map[string]bool)
	for line := range strings.Lines(text) {
		// Address, permissions, offset, device, inode and path.
		fields := strings.Fields(line)
		if len(fields) < 6 || !strings.HasPrefix(path.Base(fields[5]), prefix) {
			continue
		}
		// One file may have two names.
		if file := fields[3] + " " + fields[4]; !seen[file] {
			seen[file] = true
			paths = append(paths, fields[5])
		}
	}
	return paths, ok
}
