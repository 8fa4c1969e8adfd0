package doctor

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/weft-go/weft/internal/sharedmemory"
)

func (x *examination) lookAtSharedMemory() {
	x.ptraceScope()
	x.crossMemory()
	x.roomInSharedMemory()
	x.staleNames()
}

func (x *examination) ptraceScope() {
	const name = "proc/sys/kernel/yama/ptrace_scope"
	scope, ok := x.read(name)
	switch {
	case !ok || scope == "0":
		x.fine("/"+name, "processes of one user may look into each other's memory")
	case x.can(capabilityPtrace):
		x.fine("/"+name, "it is "+scope+", and does not count for the process, which has CAP_SYS_PTRACE")
	default:
		x.find(Ptrace, "/"+name, "it is "+scope)
	}
}

// crossMemory tries what a seccomp profile may forbid whatever the kernel allows.
func (x *examination) crossMemory() {
	const looked = "process_vm_readv, of the own process"
	if x.Peek == nil {
		return
	}
	if err := x.Peek(); err != nil {
		x.find(NoCrossMemory, looked, "it says: "+err.Error())
		return
	}
	x.fine(looked, "it is not forbidden")
}

// perProcessor is what the shm provider wants of /dev/shm for each processor.
const perProcessor = 16 << 20

func (x *examination) roomInSharedMemory() {
	looked := "/" + x.ofProcess("mounts")
	text, _ := x.read(x.ofProcess("mounts"))
	room := uint64(0)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[1] == "/dev/shm" {
			room = sizeOption(fields[3]) // of mounts over each other, the last
		}
	}
	online, ok := x.read("sys/devices/system/cpu/online")
	processors := countList(online)
	if room == 0 || !ok {
		return // without a limit it is half of the memory
	}
	found := fmt.Sprintf("/dev/shm has %d MiB, for %d processors", room>>20, processors)
	if room < uint64(processors)*perProcessor {
		x.find(SmallSharedMemory, looked, found)
		return
	}
	x.fine(looked, found)
}

// sizeOption reads size=65536k among the options of a mount; 0 means that there is none.
func sizeOption(options string) uint64 {
	for option := range strings.SplitSeq(options, ",") {
		value, ok := strings.CutPrefix(option, "size=")
		if !ok {
			continue
		}
		shift := 0
		if number, kilo := strings.CutSuffix(value, "k"); kilo {
			value, shift = number, 10
		}
		n, _ := strconv.ParseUint(value, 10, 64)
		return n << shift
	}
	return 0
}

// countList counts the members of a list such as 0-3,8.
func countList(list string) (n int) {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err == nil && to >= from {
			n += to - from + 1
		}
	}
	return n
}

func (x *examination) staleNames() {
	const folder = "dev/shm"
	var stale []string
	var size int64
	for _, name := range x.list(folder) {
		pid, known := sharedmemory.Owner(x.Root, path.Join(folder, name))
		if !known || x.lives(pid) {
			continue
		}
		stale = append(stale, name)
		if info, err := fs.Stat(x.Root, path.Join(folder, name)); err == nil {
			size += info.Size()
		}
	}
	if len(stale) == 0 {
		x.fine("/"+folder, "no names of processes that are gone")
		return
	}
	if option := x.hidesProcesses(); option != "" {
		// Those of other users may well live, and would lose their memory.
		x.find(Unseen, "/"+folder, fmt.Sprintf("%d names of processes that are gone, or of other users: /proc does not show those (%s)", len(stale), option))
		return
	}
	const most = 5
	listed := strings.Join(stale[:min(most, len(stale))], ", ")
	if len(stale) > most {
		listed += " and others"
	}
	x.find(StaleNames, "/"+folder, fmt.Sprintf("%d names of processes that are gone, up to %d MiB: %s", len(stale), (size+1<<20-1)>>20, listed))
}

// lives is false of zombies, which have no memory any more: in a container whose first process
// reaps none, they stay.
func (x *examination) lives(pid int) bool {
	folder := path.Join("proc", strconv.Itoa(pid))
	return x.exists(folder) && !strings.HasPrefix(x.statusIn(path.Join(folder, "status"), "State"), "Z")
}

// hidesProcesses returns the option by which /proc leaves out the processes of other users,
// which then look as if they were gone.
func (x *examination) hidesProcesses() string {
	if x.ownCapability(capabilityPtrace) {
		return ""
	}
	text, _ := x.read("proc/self/mounts")
	hides := ""
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[1] != "/proc" {
			continue
		}
		hides = "" // of mounts over each other, the last counts
		for option := range strings.SplitSeq(fields[3], ",") {
			switch option {
			case "hidepid=2", "hidepid=4", "hidepid=invisible", "hidepid=ptraceable":
				hides = option
			}
		}
	}
	return hides
}
