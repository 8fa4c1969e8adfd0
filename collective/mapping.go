package collective

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/internal/hostmemory"
)

// The windows of large calls are shared, too, where the caches are: who puts to one copies
// there. noticeReady, or noticeScratch, has the name of the window behind what it has elsewhere,
// if it goes by a ring, and whoever reads it maps the window, once: until it is told that it is
// there no more (noticeEnded), or all have closed. A window ends with a header, by which it is
// known that it is the one that was meant:
//
//	cookie 8 bytes: that of the cache
//	name   8
//	base   8: where the window begins, in exposures of this device

// windowName is how other processes of the host find a window: which of the process it is in its
// upper 32 bits, so that no two are called the same, and below that the logarithm of its size (8),
// and its descriptor (24). It is not 0.
type windowName uint64

const (
	descriptorBits = 24
	sizeBits       = 8

	// largestWindow is the largest that is shared, and mostWindows how many of a rank are mapped:
	// as many as it keeps, and as are in use.
	largestWindow = 64 << 20
	mostWindows   = mostSpare + slots
)

func (n windowName) descriptor() uint64 { return uint64(n) & (1<<descriptorBits - 1) }
func (n windowName) size() int          { return 1 << min(uint64(n)>>descriptorBits&(1<<sizeBits-1), 62) }

// windowNames is how many windows the process has shared.
var windowNames atomic.Uint32

// mapping is a window of another rank, mapped.
type mapping struct {
	name   windowName
	base   uint64
	memory []byte // without the header
	whole  []byte
}

// newSharedWindow is a window that other processes can map, of a power of two bytes.
func newSharedWindow(p progress, size int) (*block, error) {
	b, err := newSharedBlock(p, size+headerSize)
	if err != nil {
		return nil, err
	}
	if _, descriptor := b.shared.Name(); descriptor < 1<<descriptorBits {
		b.name = windowName(uint64(windowNames.Add(1))<<32 | uint64(bits.TrailingZeros(uint(size)))<<descriptorBits | descriptor)
	}
	return b, nil
}

// room is how much of a window is for data.
func (b *block) room() int {
	if b.name != 0 {
		return b.name.size()
	}
	return len(b.memory)
}

// shares says whether a window of a size is to be shared.
func (w *windows) shares(size int) bool {
	return w.shareable && size <= largestWindow && sharedBlocks.Load() < mostShared/2
}

// nameFor is what a rank, which knows the cookie, is to call a window; 0 if it cannot be mapped.
func (g *group) nameFor(b *block, rank int) windowName {
	if b.name == 0 {
		return 0
	}
	if b.named.empty() {
		header := b.memory[b.room():]
		for i, field := range [...]uint64{g.near.cookie, uint64(b.name), b.at(0).Address} {
			binary.LittleEndian.PutUint64(header[8*i:], field)
		}
	}
	b.named.add(rank)
	return b.name
}

// mapWindow returns the window of a rank whose cache is mapped, or nil: then what is put there goes
// another way.
func (o *outbox) mapWindow(name windowName) *mapping {
	if name == 0 {
		return nil
	}
	for _, m := range o.windows {
		if m.name == name {
			return m
		}
	}
	size := name.size()
	if len(o.windows) >= mostWindows || size > largestWindow {
		return nil
	}
	whole, err := hostmemory.Map(sharedName, o.owner, name.descriptor(), size+headerSize)
	if err != nil {
		return nil
	}
	header := whole[size:]
	if binary.LittleEndian.Uint64(header) != o.cookie || binary.LittleEndian.Uint64(header[8:]) != uint64(name) {
		_ = hostmemory.Unmap(whole)
		return nil
	}
	m := &mapping{name: name, base: binary.LittleEndian.Uint64(header[16:]), memory: whole[:size], whole: whole}
	o.windows = append(o.windows, m)
	return m
}

// at is so many bytes of a window at an address of the device, or nil if they are not of it.
func (m *mapping) at(address uint64, length int) []byte {
	if m == nil || address < m.base || address-m.base > uint64(len(m.memory)) {
		return nil
	}
	if there := m.memory[address-m.base:]; length <= len(there) {
		return there[:length]
	}
	return nil
}

// unmap ends a mapping. What was said of the window before, and is still known, finds nothing there.
func (m *mapping) unmap() error {
	whole := m.whole
	m.memory, m.whole = nil, nil
	return hostmemory.Unmap(whole)
}

// unmapWindow ends the use of a window.
func (o *outbox) unmapWindow(name windowName) error {
	i := slices.IndexFunc(o.windows, func(m *mapping) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	m := o.windows[i]
	o.windows = slices.Delete(o.windows, i, i+1)
	return m.unmap()
}

// tellEnded tells those who have mapped windows that these are there no more.
func (g *group) tellEnded(p progress) {
	for _, b := range g.windows.ended {
		for rank := range g.members {
			if b.named.has(rank) && g.members[rank].lost == nil {
				_ = g.comm.Notify(p, rank, comm.Notice{Tag: noticeTag(noticeEnded, 0), ID: uint64(b.name)})
			}
		}
	}
	clear(g.windows.ended)
	g.windows.ended = g.windows.ended[:0]
}
