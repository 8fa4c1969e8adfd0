package fabric

import (
	"sync"

	"github.com/weft-go/weft/cgo"
)

// setup is held while something is listed, opened or closed that the efa provider of libfabric
// 1.17 has variables of its own for, without a lock: two threads that do so at once end in
// SIGSEGV there, in fi_domain or fi_freeinfo.
var setup sync.Mutex

// inTurn makes a call of that kind.
func inTurn(call func() cgo.Code) cgo.Code {
	setup.Lock()
	defer setup.Unlock()
	return call()
}
