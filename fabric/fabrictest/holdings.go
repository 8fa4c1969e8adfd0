package fabrictest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/weft-go/weft/fabric"
)

// Holdings are what a process has that it must give back.
type Holdings struct {
	Goroutines, Descriptors, Handles int
	Memory                           int64 // in bytes, of C's
}

// Holds is what this process has now.
func Holds() (h Holdings) {
	h.Goroutines, h.Handles = runtime.NumGoroutine(), len(fabric.OpenHandles())
	names, _ := os.ReadDir("/proc/self/fd")
	h.Descriptors = len(names)
	for _, n := range fabric.MemoryInUse() {
		h.Memory += n
	}
	return h
}

// Returned waits until no more is held than before, for patience at most, or says what is
// left.
func (before Holdings) Returned(patience time.Duration) error {
	var now Holdings
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		now = Holds()
		if now.Goroutines <= before.Goroutines && now.Descriptors <= before.Descriptors && now.Handles <= before.Handles && now.Memory <= before.Memory {
			return nil
		}
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return fmt.Errorf("held before: %+v, now: %+v\n%v\n%s\n%s", before, now, fabric.OpenHandles(), strings.Join(openDescriptors(), "\n"), stacks)
}

// openDescriptors are the open ones, and what each is of.
func openDescriptors() (all []string) {
	names, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range names {
		what, _ := os.Readlink(name)
		all = append(all, filepath.Base(name)+": "+what)
	}
	return all
}
