package fabric

import "github.com/weft-go/weft/cgo"

// injected counts the writes of an endpoint, where that has libfabric bound those that are
// injected.
type injected struct {
	counter cgo.Counter
	open    bool
}

// countInjected has an endpoint of ofi_rxm over tcp count writes, if the program does not: of those that
// are counted it takes no more than it has contexts for, and of others any number, for a peer that
// takes none.
func (e *Endpoint) countInjected(counters []CounterBinding) error {
	if e.provider != "tcp;ofi_rxm" || e.Info().Capabilities()&RemoteMemory == 0 {
		return nil
	}
	for _, b := range counters {
		if b.Events&CountWrites != 0 {
			return nil
		}
	}
	counter, code := e.domain.raw.OpenCounter(cgo.WaitNone)
	if code != 0 {
		return fail("fi_cntr_open", e.provider, int(code))
	}
	e.injected = injected{counter, true}
	return fail("fi_ep_bind of counter", e.provider, int(e.raw.BindCounter(counter, uint64(CountWrites))))
}

// close is for when the endpoint is closed in libfabric.
func (i *injected) close() {
	if i.open {
		i.counter.Close()
		i.open = false
	}
}
