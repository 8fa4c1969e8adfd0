package collective

import (
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/internal/cachedcopy"
)

// mostCached is how much data all ranks of a call have that is looked for in the caches by whoever is to read
// it: with the windows that it goes through it is three times that. More does not stay there, so it is copied past
// them, which saves the processor to read what it writes over. Go does that with copies of pastPiece or more,
// and so what is handed on in pieces is cut into such, where it has four or more of them.
const (
	mostCached = 8 << 20
	pastPiece  = 1 << 20
	leastPast  = 4 * pastPiece
)

// copy copies data of a call.
func (c *call) copy(to, from []byte) {
	if c.past {
		copy(to, from)
		return
	}
	cachedcopy.Copy(to, from)
}

// data is how many bytes all ranks of a call have, about: of an uneven one, each knows its own.
func (c *call) data() int {
	s := &c.shape
	if s.uneven != nil {
		return s.Size * max(len(c.input), len(c.output))
	}
	switch s.Collective {
	case schedule.CollectiveAllgather, schedule.CollectiveReduceScatter, schedule.CollectiveAlltoall:
		return s.Size * s.Size * s.Length * s.element
	}
	return s.Size * s.Length * s.element
}
