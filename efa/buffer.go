package efa

import (
	"errors"
	"math/bits"

	"github.com/weft-go/weft/fabric"
)

// buffer is memory outside the Go heap that the device may use: for the shared
// receives, and for short messages on their way out.
type buffer struct {
	data       []byte
	descriptor fabric.Descriptor
	class      int
}

// bufferPool makes buffers in two sizes, in arenas that are registered once.
// It grows with what is in flight, and keeps what it has.
type bufferPool struct {
	device   fabric.Device
	register bool
	sizes    [2]int
	free     [2][]*buffer
	arenas   []*fabric.Arena
}

const (
	smallBuffer = 256
	chunkSize   = 64 // buffers made at a time
)

func newBufferPool(device fabric.Device, largest int) bufferPool {
	return bufferPool{
		device: device, register: device.Attributes().NeedsRegistration,
		sizes: [2]int{smallBuffer, max(largest, smallBuffer)},
	}
}

// take returns a buffer with room for n bytes, at most the largest size.
func (p *bufferPool) take(n int) (*buffer, error) {
	class := 0
	if n > p.sizes[0] {
		class = 1
	}
	if len(p.free[class]) == 0 {
		if err := p.grow(class); err != nil {
			return nil, err
		}
	}
	last := len(p.free[class]) - 1
	b := p.free[class][last]
	p.free[class] = p.free[class][:last]
	return b, nil
}

func (p *bufferPool) give(b *buffer) { p.free[b.class] = append(p.free[b.class], b) }

func (p *bufferPool) grow(class int) error {
	// Rounded so that no two buffers share a cache line.
	size := (p.sizes[class] + 63) &^ 63
	// Of most, little is used.
	arena, err := fabric.NewArenaWith(size*chunkSize, fabric.ArenaConfig{Pages: fabric.OrdinaryPages})
	if err != nil {
		return err
	}
	var descriptor fabric.Descriptor
	if p.register {
		region, err := p.device.Register(arena.Bytes())
		if err != nil {
			return errors.Join(err, arena.Close())
		}
		descriptor = region.Descriptor()
	}
	p.arenas = append(p.arenas, arena)
	made := make([]buffer, chunkSize)
	for i := range made {
		made[i] = buffer{data: arena.Bytes()[i*size : i*size+p.sizes[class] : i*size+p.sizes[class]], descriptor: descriptor, class: class}
		p.free[class] = append(p.free[class], &made[i])
	}
	return nil
}

// close unmaps everything. The device has been closed, and has ended the
// registrations.
func (p *bufferPool) close() error {
	var all error
	for _, a := range p.arenas {
		all = errors.Join(all, a.Close())
	}
	p.arenas, p.free = nil, [2][]*buffer{}
	return all
}

// shelf keeps Go memory for messages that no reader has asked for yet, by
// powers of two, so that a steady flow of them does not allocate.
type shelf struct {
	free [24][][]byte
	kept int
}

const (
	smallestShelf = 6        // 64 bytes
	mostKept      = 16 << 20 // bytes
)

func (s *shelf) take(n int) []byte {
	class := max(bits.Len(uint(max(n, 1)-1))-smallestShelf, 0)
	if class >= len(s.free) {
		return make([]byte, n)
	}
	if last := len(s.free[class]) - 1; last >= 0 {
		b := s.free[class][last]
		s.free[class] = s.free[class][:last]
		s.kept -= cap(b)
		return b[:n]
	}
	return make([]byte, n, 1<<(class+smallestShelf))
}

func (s *shelf) give(b []byte) {
	c := cap(b)
	class := bits.Len(uint(c)) - 1 - smallestShelf
	if class < 0 || class >= len(s.free) || c != 1<<(class+smallestShelf) || s.kept+c > mostKept {
		return
	}
	s.kept += c
	s.free[class] = append(s.free[class], b)
}
