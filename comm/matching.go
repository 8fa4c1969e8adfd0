package comm

import (
	"encoding/binary"
	"fmt"
)

// Matching says who finds the receive for a message.
type Matching uint8

const (
	// MatchInSoftware has this package do it, on every device.
	MatchInSoftware Matching = iota
	// MatchByProvider leaves it to the provider of the device, where receives are as
	// long as there is room for them and nobody probes. What a program sees is the
	// same, but that requests may end in another order than their messages were
	// matched in. A device that cannot do it right is a *MatchingError of Open. In a
	// world of one rank there is nothing for a provider to match.
	MatchByProvider
)

func (m Matching) String() string {
	switch m {
	case MatchInSoftware:
		return "software"
	case MatchByProvider:
		return "provider"
	default:
		return fmt.Sprintf("Matching(%d)", uint8(m))
	}
}

// terms are what a rank tells the others about matching, before its address: who does
// it, and how much each other may have sent to it that it has not seen.
type terms struct {
	matching Matching
	limit    tally
}

// termsSize is the length of terms in bytes.
const termsSize = 1 + 8 + 8

func (t *terms) append(card []byte) []byte {
	card = append(card, byte(t.matching))
	card = binary.LittleEndian.AppendUint64(card, t.limit.messages)
	return binary.LittleEndian.AppendUint64(card, t.limit.bytes)
}

func parseTerms(card []byte) terms {
	return terms{
		matching: Matching(card[0]),
		limit:    tally{binary.LittleEndian.Uint64(card[1:]), binary.LittleEndian.Uint64(card[9:])},
	}
}

func (e *engine) terms() terms {
	t := terms{matching: e.config.Matching}
	if e.provider != nil {
		t.limit = e.provider.limit
	}
	return t
}

// agree looks whether all ranks have the same mode of matching, and notes what they
// accept.
func (e *engine) agree(mine terms, cards [][]byte) error {
	for rank, card := range cards {
		theirs := parseTerms(card[tokenSize:])
		if theirs.matching != mine.matching {
			return &ConfigError{"Matching", fmt.Sprintf("it is %v here, and %v on rank %d", mine.matching, theirs.matching, rank)}
		}
		e.peers[rank].limit = theirs.limit
	}
	return nil
}
