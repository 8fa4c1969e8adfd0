package fabric

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/weft-go/weft/cgo"
)

// wrongRemotes says what is wrong with the pieces of remote memory of an operation with so many
// bytes here, in values of a size, or "".
func (op *Op) wrongRemotes(here, size uint64) string {
	switch {
	case kinds[op.Kind].inject:
		return "an injected operation has one piece of remote memory"
	case op.Remote != Remote{}:
		return "an operation has either Remote or Remotes"
	case len(op.Remotes) > cgo.MaxVectors:
		return "an operation has at most " + strconv.Itoa(cgo.MaxVectors) + " pieces of remote memory, not " + strconv.Itoa(len(op.Remotes))
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
	for _, r := range op.Remotes {
		if r.Len%size != 0 {
			return strconv.FormatUint(r.Len, 10) + " bytes of remote memory are no whole number of values of " +
				strconv.FormatUint(size, 10) + " bytes"
		}
		if why := r.wrong(r.Len); why != "" {
			return why
		}
	}
	return ""
}

// length is the number of bytes of an operation's buffers.
func (op *Op) length() int {
	n := len(op.Buf)
	for _, b := range op.Vector {
		n += len(b)
	}
	return n
}

// wrong says what is wrong with so many bytes of remote memory, or "". The target's libfabric
// adds up where they end (ofi_mr_map_verify), and takes what wraps around for the beginning of
// memory, within any region: with virtual addresses its process dies.
func (r Remote) wrong(length uint64) string {
	if length == 0 || r.Address <= math.MaxUint64-length {
		return ""
	}
	return "remote memory of " + strconv.FormatUint(length, 10) + " bytes from 0x" + strconv.FormatUint(r.Address, 16) +
		" on ends beyond the last address; take the address from RemoteRegion.At or Region.RemoteOf"
}

// mostRemotes is how many pieces of remote memory an operation has.
func (e *Endpoint) mostRemotes() uint64 { return min(max(e.Info().a.RMAVectors, 1), cgo.MaxVectors) }

func (e *Endpoint) tooManyRemotes(op *Op) bool {
	return len(op.Remotes) > 1 && kinds[op.Kind].remote && uint64(len(op.Remotes)) > e.mostRemotes()
}
