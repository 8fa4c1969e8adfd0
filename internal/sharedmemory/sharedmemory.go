// Package sharedmemory removes what a killed process has left in /dev/shm.
package sharedmemory

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Of are the files of a process that the shm provider has named after it, by what it has
// mapped.
func Of(pid int) (names []string) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil
	}
	prefix := fmt.Sprintf("/dev/shm/%d:", pid)
	for line := range strings.Lines(string(maps)) {
		_, name, found := strings.Cut(line, prefix)
		// What was removed has a word behind its name.
		if name = prefix + strings.TrimSpace(name); found && !strings.Contains(name, " ") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Remove removes what the shm provider names after a process that could not do it
// itself. Left there, it is in the way of the next process with the id: libfabric does
// not enable an endpoint whose name there is.
func Remove(pid int) {
	names, _ := filepath.Glob(fmt.Sprintf("/dev/shm/%d:*", pid))
	for _, name := range names {
		_ = os.Remove(name)
	}
}
