package fabric

import (
	"math/bits"
	"strconv"

	"github.com/weft-go/weft/cgo"
)

// wrongRemotes says what is wrong with the pieces of remote memory of an operation,
// or "".
func (op *Op) wrongRemotes() string {
	switch {
	case op.Kind != OpRead && op.Kind != OpWrite:
		return "only reads and writes have several pieces of remote memory"
	case op.Remote != Remote{}:
		return "an operation has either Remote or Remotes"
	case len(op.Remotes) > cgo.MaxVectors:
		return "an operation has at most " + strconv.Itoa(cgo.MaxVectors) + " pieces of remote memory, not " + strconv.Itoa(len(op.Remotes))
	}
	here := uint64(len(op.Buf))
	for _, b := range op.Vector {
		here += uint64(len(b))
	}
	var there, over uint64
	for i := range op.Remotes {
		var carry uint64
		there, carry = bits.Add64(there, op.Remotes[i].Len, 0)
		over |= carry
	}
	if there != here || over != 0 {
		return "the remote memory of an operation is as long as that here, " + strconv.FormatUint(here, 10) + " bytes"
	}
	return ""
}

// mostRemotes is how many pieces of remote memory an operation has.
func (e *Endpoint) mostRemotes() uint64 { return min(max(e.Info().a.RMAVectors, 1), cgo.MaxVectors) }

func (e *Endpoint) tooManyRemotes(op *Op) bool {
	return len(op.Remotes) > 1 && kinds[op.Kind].remote && uint64(len(op.Remotes)) > e.mostRemotes()
}
