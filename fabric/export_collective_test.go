package fabric

import "github.com/weft-go/weft/cgo"

// PostBare posts every kind of collective without a group, as no program can,
// and returns the first answer that is not "not supported", or that.
func PostBare(e *Endpoint) error {
	var err error
	for kind := range collectiveNames {
		index, token := e.send.take(e, &Op{Kind: OpCollective})
		err = fail(kind.String(), e.provider, int(e.raw.PostCollective(&cgo.Collective{
			Kind: uint32(kind), Slot: e.send.slots.Address(int(index)), Token: uint64(token),
		})))
		e.send.give(index)
		if err == nil || err.(*Error).Errno != Errno(cgo.NoSystem) {
			return err
		}
	}
	return err
}
