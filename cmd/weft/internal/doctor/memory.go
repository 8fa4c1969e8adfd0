package doctor

import (
	"fmt"
	"strconv"
	"strings"
)

// perEndpoint is about what an endpoint of the efa provider registers.
const perEndpoint = 110 << 20

// manyEndpoints is one on each device of the largest instances that there are. A limit
// that is enough for so many is one that somebody chose.
const manyEndpoints = 32

func (x *examination) lookAtMemory() {
	x.lockedMemory()
	x.hugePages()
}

func (x *examination) lockedMemory() {
	looked := "/" + x.ofProcess("limits")
	text, ok := x.read(x.ofProcess("limits"))
	limit := ""
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "Max locked memory"); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				limit = fields[0]
			}
		}
	}
	bytes, err := strconv.ParseUint(limit, 10, 64)
	switch {
	case !ok || limit == "":
		x.find(Unseen, looked, "the limit of locked memory cannot be read")
	case limit == "unlimited":
		x.fine(looked, "memory may be locked without limit")
	case x.can(capabilityLock):
		x.fine(looked, "the limit of locked memory is "+limit+" bytes, and does not count for the process, which has CAP_IPC_LOCK")
	case err != nil:
		x.find(Unseen, looked, "the limit of locked memory is "+limit)
	default:
		x.find(MemoryLock, looked, fmt.Sprintf("the limit is %d KiB, enough for %d endpoints", bytes>>10, bytes/perEndpoint))
		x.gradeIf(bytes >= manyEndpoints*perEndpoint, Note)
		x.gradeIf(len(x.Library.Devices) > 0 && x.Library.Failure != "", Problem)
	}
}

func (x *examination) hugePages() {
	const name = "proc/meminfo"
	text, _ := x.read(name)
	fields := make(map[string]uint64)
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		if words := strings.Fields(value); len(words) > 0 {
			fields[key], _ = strconv.ParseUint(words[0], 10, 64)
		}
	}
	free, size := fields["HugePages_Free"], fields["Hugepagesize"]<<10
	found := fmt.Sprintf("%d of %d huge pages are free, of %d KiB each", free, fields["HugePages_Total"], size>>10)
	if free*size < perEndpoint {
		x.find(NoHugePages, "/"+name, found)
		return
	}
	x.fine("/"+name, found)
}
