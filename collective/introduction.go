package collective

import (
	"fmt"
	"slices"

	"github.com/weft-go/weft/collective/schedule"
)

// introduction is what a rank tells the others of its parameters, so that they compare
// them with their own before they write to its memory: low is the number of a tag, and
// high the upper 48 bits of a length.
type introduction struct{ low, high uint64 }

// What is where in an introduction. The largest values of a Config fit.
const (
	pagesBits     = 21 // lowest in low, below Chunk
	windowBits    = 16 // lowest in high, below Fanout
	fanoutBits    = 17
	algorithmsBit = windowBits + fanoutBits
)

// introduce says what a Config with defaults is.
func introduce(c *Config) introduction {
	kinds := make([]schedule.Collective, 0, len(c.Algorithms))
	for kind, a := range c.Algorithms {
		if a != schedule.Default {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	algorithms := newHash()
	for _, kind := range kinds {
		algorithms.add(int(kind))
		algorithms.add(int(c.Algorithms[kind]))
	}
	for _, line := range c.Choices {
		for _, n := range [...]int{int(line.Collective), line.Ranks, line.Bytes, int(line.Algorithm)} {
			algorithms.add(n)
		}
	}
	return introduction{
		low:  uint64(c.CachePages) | uint64(c.Chunk)<<pagesBits,
		high: uint64(c.Fanout)<<windowBits | uint64(algorithms)<<algorithmsBit,
	}
}

// differs is a *ConfigError if a rank has introduced itself with something else.
func (mine introduction) differs(theirs introduction, rank int) error {
	if mine == theirs {
		return nil
	}
	for _, p := range []struct {
		field        string
		mine, theirs uint64
	}{
		{"CachePages", mine.low & (1<<pagesBits - 1), theirs.low & (1<<pagesBits - 1)},
		{"Chunk", mine.low >> pagesBits, theirs.low >> pagesBits},
		{"Fanout", mine.high << (64 - algorithmsBit) >> (64 - fanoutBits), theirs.high << (64 - algorithmsBit) >> (64 - fanoutBits)},
	} {
		if p.mine != p.theirs {
			return &ConfigError{p.field, fmt.Sprintf("%d here and %d on rank %d; all ranks must have the same", p.mine, p.theirs, rank)}
		}
	}
	return &ConfigError{"Algorithms", fmt.Sprintf("these, or Choices, are others than on rank %d; all ranks must have the same", rank)}
}

// hash is FNV-1a, which is the same in all processes.
type hash uint64

const hashPrime = 0x100000001b3

func newHash() hash { return 0xcbf29ce484222325 }

func (h *hash) addText(text string) {
	h.add(len(text))
	for i := range len(text) {
		*h = (*h ^ hash(text[i])) * hashPrime
	}
}

func (h *hash) add(n int) {
	for range 8 {
		*h = (*h ^ hash(n&0xff)) * hashPrime
		n >>= 8
	}
}
