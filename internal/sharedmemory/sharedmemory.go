// Package sharedmemory removes what a killed process has left in /dev/shm.
package sharedmemory

import (
	"fmt"
	"os"
	"path/filepath"
)

// Remove removes what the shm provider names after a process that could not do it
// itself. Left there, it is in the way of the next process with the id: libfabric does
// not enable an endpoint whose name there is.
func Remove(pid int) {
	names, _ := filepath.Glob(fmt.Sprintf("/dev/shm/%d:*", pid))
	for _, name := range names {
		_ = os.Remove(name)
	}
}
