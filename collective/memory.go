package collective

import (
	"errors"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// block is registered memory that peers write to.
type block struct {
	arena    *fabric.Arena
	exposure *efa.Exposure
	memory   []byte
}

func newBlock(p progress, size int) (*block, error) {
	arena, err := fabric.NewArena(size)
	if err != nil {
		return nil, err
	}
	b := &block{arena: arena, memory: arena.Bytes()[:size]}
	if b.exposure, err = p.Expose(b.memory); err != nil {
		return nil, errors.Join(err, arena.Close())
	}
	return b, nil
}

// close ends the registration and the memory. Nothing may be on its way there.
func (b *block) close() error {
	return errors.Join(b.exposure.Close(), b.arena.Close())
}

// at is where a part of the block is, for peers.
func (b *block) at(offset int) fabric.Remote {
	r := b.exposure.Remote
	r.Address += uint64(offset)
	return r
}

// alignment is that of the parts of a block: a cache line.
const alignment = 64

func aligned(n int) int { return (n + alignment - 1) &^ (alignment - 1) }

// windows are the blocks of calls with more data than the cache holds.
type windows struct {
	spare []*block // by no order, a few
}

const (
	// mostSpare is how many blocks are kept for the next call, and leastWindow the
	// smallest: they come in powers of two.
	mostSpare   = 4
	leastWindow = 64 << 10
)

// take returns a block of at least n bytes.
func (w *windows) take(p progress, n int) (*block, error) {
	size := leastWindow
	for size < n {
		size *= 2
	}
	for i, b := range w.spare {
		if len(b.memory) == size {
			w.spare[i] = w.spare[len(w.spare)-1]
			w.spare = w.spare[:len(w.spare)-1]
			return b, nil
		}
	}
	return newBlock(p, size)
}

// give gives a block back to which nothing is on its way.
func (w *windows) give(b *block) error {
	if len(w.spare) < mostSpare {
		w.spare = append(w.spare, b)
		return nil
	}
	// The oldest goes, so that what is asked for now is what stays.
	oldest := w.spare[0]
	copy(w.spare, w.spare[1:])
	w.spare[len(w.spare)-1] = b
	return oldest.close()
}

func (w *windows) close() error {
	var err error
	for _, b := range w.spare {
		err = errors.Join(err, b.close())
	}
	w.spare = nil
	return err
}
