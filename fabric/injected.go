package fabric

import "github.com/weft-go/weft/cgo"

// injected counts the writes of an endpoint, where that has libfabric remember those that
// are injected.
type injected struct {
	counter cgo.Counter
	open    bool
}

// writesWithoutContext is where a write of which libfabric does not know whose it is ends the
// process if it fails: ofi_rxm over tcp looks for the operation of what tcp says has failed, and
// tcp has none for what a peer writes, nor for a write that was injected.
func writesWithoutContext(e *Endpoint) bool {
	return e.provider == "tcp;ofi_rxm" && e.Info().Capabilities()&RemoteMemory != 0
}

// countInjected has the endpoint count writes there, if the program does not: for those that
// are counted ofi_rxm keeps a context. It takes no more of them then than it has contexts.
func (e *Endpoint) countInjected(counters []CounterBinding) error {
	if !writesWithoutContext(e) {
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
