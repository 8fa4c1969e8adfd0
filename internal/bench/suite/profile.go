package suite

import (
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
)

// profile is what a side writes while it works: what takes the processor's
// time, and at the end what is in the heap. A nil one writes nothing.
type profile struct {
	path string // without .cpu.pprof and .heap.pprof
	cpu  *os.File
}

// newProfile makes the profile of a side. In one that is idle every allocation
// from now on is in it, because what it has is what counts there.
func newProfile(path string, o order) *profile {
	if path == "" {
		return nil
	}
	if o.work == idleWork {
		runtime.MemProfileRate = 1
	}
	if o.first {
		return &profile{path: path + "-first"}
	}
	return &profile{path: path + "-second"}
}

func (p *profile) start() (err error) {
	if p == nil {
		return nil
	}
	if p.cpu, err = os.Create(p.path + ".cpu.pprof"); err != nil {
		return err
	}
	return pprof.StartCPUProfile(p.cpu)
}

func (p *profile) stop() error {
	if p == nil {
		return nil
	}
	pprof.StopCPUProfile()
	heap, err := os.Create(p.path + ".heap.pprof")
	if err != nil {
		return errors.Join(err, p.cpu.Close())
	}
	// The profile is of the last collection.
	runtime.GC()
	return errors.Join(pprof.WriteHeapProfile(heap), heap.Close(), p.cpu.Close())
}
