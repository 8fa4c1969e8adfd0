package fabric

import (
	"sync"
	"time"

	"github.com/weft-go/weft/cgo"
)

// setup is held while something is listed, opened or closed that the efa provider of libfabric
// 1.17 has variables of its own for, without a lock: two threads that do so at once end in
// SIGSEGV there, in fi_domain, fi_endpoint or fi_freeinfo. It comes before the queues that are
// kept free of readers.
var setup sync.Mutex

// inTurn makes a call of that kind.
func inTurn(call func() cgo.Code) cgo.Code {
	setup.Lock()
	defer setup.Unlock()
	return call()
}

// lockSetupOfAll locks setup, and keeps everybody out of what libfabric looks at what efa knows of
// shm for, until readmit is called.
func lockSetupOfAll() (readmit func()) {
	for {
		setup.Lock()
		if !cgo.KeepsShmInfo() {
			return func() {}
		}
		// Whoever ends endpoints that are closed for the program may come to wait for setup.
		if onThisHost.ending.TryLock() {
			if all, ok := stopAll(onThisHost.misledByInfos()); ok {
				return func() {
					all()
					onThisHost.ending.Unlock()
				}
			}
			onThisHost.ending.Unlock()
		}
		setup.Unlock()
		time.Sleep(time.Millisecond)
	}
}
