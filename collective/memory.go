package collective

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/hostmemory"
)

// block is registered memory that peers write to.
type block struct {
	arena    *fabric.Arena // nil if it is shared
	shared   *hostmemory.Memory
	exposure *efa.Exposure
	memory   []byte
	// name is what other processes map a window by, or 0, and named are the ranks that know it.
	name  windowName
	named arrivalSet
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

// newSharedBlock is a block that other processes can map.
func newSharedBlock(p progress, size int) (_ *block, err error) {
	if sharedBlocks.Add(1) > mostShared {
		sharedBlocks.Add(-1)
		return nil, errTooManyShared
	}
	defer func() {
		if err != nil {
			sharedBlocks.Add(-1)
		}
	}()
	shared, err := hostmemory.New(sharedName, size)
	if err != nil {
		return nil, fmt.Errorf("collective: %w", err)
	}
	b := &block{shared: shared, memory: shared.Bytes}
	if b.exposure, err = p.Expose(b.memory); err != nil {
		return nil, errors.Join(err, shared.Close())
	}
	sharedBytes.Add(int64(size))
	return b, nil
}

// How many shared blocks the process has, and what they take.
var sharedBlocks, sharedBytes atomic.Int64

var errTooManyShared = errors.New("collective: too many shared blocks")

// SharedMemory is how many bytes of shared memory the process has for the caches of its
// communicators and for their calls, on shm; what other ranks have, and this one has mapped, is theirs. It is 0 when
// they are closed on all ranks. It is not part of fabric.MemoryInUse. Any goroutine may call it.
func SharedMemory() int64 { return sharedBytes.Load() }

// close ends the registration and the memory. Nothing may be on its way there.
func (b *block) close() error {
	err := b.exposure.Close()
	if b.shared == nil {
		return errors.Join(err, b.arena.Close())
	}
	if err != nil {
		return err // the device may still write there
	}
	sharedBlocks.Add(-1)
	sharedBytes.Add(-int64(len(b.memory)))
	return b.shared.Close()
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
	spare []*block // the oldest first
	// registered: the device pins what it registers, and knows nothing of pages otherwise.
	registered bool
	// shareable: other processes map them.
	shareable bool
	ended     []*block // of which those that have mapped them are to be told
}

const (
	// mostSpare is how many blocks are kept for the next calls, and spareBytes how many
	// bytes they have beside those of the largest.
	mostSpare  = 4
	spareBytes = 128 << 20
	// leastWindow is the smallest: they come in powers of two, but for those between
	// mostSmall and leastLarge, which is what it takes to have huge pages.
	leastWindow = 64 << 10
	mostSmall   = 256 << 10
	leastLarge  = 2 << 20
)

// take returns a block of at least n bytes.
func (w *windows) take(p progress, n int) (*block, error) {
	size := leastWindow
	for size < n {
		size *= 2
	}
	if size > mostSmall && !w.registered {
		size = max(size, leastLarge)
	}
	best := -1
	for i := range w.spare {
		// A shared one costs more to have anew than its size is worth. The last is in the caches.
		if b := w.spare[i]; b.room() == size || b.name != 0 && b.room() > size {
			if best < 0 || b.room() <= w.spare[best].room() {
				best = i
			}
		}
	}
	if best >= 0 {
		b := w.spare[best]
		w.spare = slices.Delete(w.spare, best, best+1)
		return b, nil
	}
	// What would not be kept beside it is not there while it is used, either.
	if err := w.trim(size); err != nil {
		return nil, err
	}
	if w.shares(size) {
		if b, err := newSharedWindow(p, size); err == nil {
			return b, nil
		}
		// The system has none, or does not want it to be shared.
	}
	return newBlock(p, size)
}

// give gives a block back to which nothing is on its way.
func (w *windows) give(b *block) error {
	err := w.trim(b.room())
	w.spare = append(w.spare, b)
	return err
}

// trim ends the oldest blocks, so that what is asked for now is what stays, until those that
// are left may be kept with one of size. The largest of all stays longer: programs have long
// calls and short ones in turn, and it is what costs most to have anew.
func (w *windows) trim(size int) error {
	var err error
	for len(w.spare) > 0 {
		largest := size
		for _, b := range w.spare {
			largest = max(largest, b.room())
		}
		if len(w.spare) < mostSpare && w.bytes()+size-largest <= spareBytes {
			return err
		}
		oldest := 0
		if len(w.spare) > 1 && w.spare[0].room() == largest {
			oldest = 1
		}
		err = errors.Join(err, w.spare[oldest].close())
		if w.spare[oldest].name != 0 {
			w.ended = append(w.ended, w.spare[oldest])
		}
		w.spare = slices.Delete(w.spare, oldest, oldest+1)
	}
	return err
}

// bytes is how many the spare blocks have together.
func (w *windows) bytes() (n int) {
	for _, b := range w.spare {
		n += b.room()
	}
	return n
}

func (w *windows) close() error {
	var err error
	for _, b := range w.spare {
		err = errors.Join(err, b.close())
	}
	// Those that have mapped them have closed, too, or are about to.
	w.spare, w.ended = nil, nil
	return err
}
