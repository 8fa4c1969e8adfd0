package fabric

import (
	"math/bits"
	"strconv"
	"sync"
	"syscall"
)

// Pool hands out buffers of an arena and takes them back, without allocation:
// all of one size, or of sizes that are powers of two, where a large one is cut
// into two halves as needed and put together again. Any goroutine may use it;
// Get and Put take a lock for a short time.
type Pool struct {
	handle
	arena  *Arena
	region *Region
	memory []byte
	unit   int // bytes of the smallest block
	levels int

	mu    sync.Mutex
	out   int
	table []poolBlock
	free  [maxLevels]int32 // the first free block of each level, or none
	full  *Error
}

// poolBlock is a block of the pool's unit, and stands for the larger block that
// begins with it.
type poolBlock struct {
	next, prev int32
	generation uint32
	level      int8
	state      blockState
}

type blockState uint8

const (
	blockInside blockState = iota // of a larger one, not at its beginning
	blockFree
	blockOut
)

const (
	maxLevels = 32
	noBlock   = int32(-1)
)

// PoolConfig says what buffers a pool has.
type PoolConfig struct {
	// Smallest and Largest are the sizes of buffers in bytes. If they are equal,
	// or Largest is 0, all buffers have the one size, rounded up to 64 bytes.
	// Otherwise both are powers of two, from 64 on.
	Smallest, Largest int
	// Region is the arena's registration, for Buffer.Descriptor and
	// Buffer.Remote; nil: the buffers have none.
	Region *Region
}

// Buffer is a piece of a pool, which Get gives and Put takes back. It is a value:
// copies of it stand for the same piece, and all are void after Put. What is in
// it is for one goroutine at a time.
type Buffer struct {
	pool       *Pool
	bytes      []byte
	block      int32
	generation uint32
}

// NewPool makes buffers of all of the arena, which nobody else may use then. Neither
// the arena nor its region can be closed before the pool. ErrInvalid says what is
// wrong with the sizes, or that the region is not of the arena, and ErrBusy that it has
// a pool already.
func NewPool(a *Arena, c PoolConfig) (*Pool, error) {
	invalid := func(detail string) error { return &Error{Op: "pool", Errno: errnoInvalid, Detail: detail} }
	if a == nil {
		return nil, invalid("it takes an arena")
	}
	if err := a.enter(); err != nil {
		return nil, err
	}
	defer a.leave()
	const line = 64
	if c.Largest == 0 {
		c.Largest = c.Smallest
	}
	size := len(a.buf)
	switch {
	case c.Smallest < 1 || c.Smallest > c.Largest || c.Largest > size:
		return nil, invalid("buffers of " + strconv.Itoa(c.Smallest) + " to " + strconv.Itoa(c.Largest) +
			" bytes cannot be had from an arena of " + strconv.Itoa(size))
	case c.Smallest == c.Largest:
		c.Smallest = (c.Smallest + line - 1) / line * line
		c.Largest = c.Smallest
		if c.Largest > size {
			return nil, invalid("a buffer, rounded up to 64 bytes, is larger than the arena")
		}
	case c.Smallest < line || bits.OnesCount(uint(c.Smallest)) != 1 || bits.OnesCount(uint(c.Largest)) != 1:
		return nil, invalid("sizes from " + strconv.Itoa(c.Smallest) + " to " + strconv.Itoa(c.Largest) + " must be powers of two, from 64 on")
	}
	if c.Region != nil {
		if _, ok := c.Region.offset(a.buf); !ok {
			return nil, invalid("the region is not of this arena")
		}
		if err := c.Region.enter(); err != nil {
			return nil, err
		}
		defer c.Region.leave()
	}
	count := size / c.Smallest
	if count > 1<<30 {
		return nil, invalid("too many buffers: the smallest should be larger")
	}
	if !a.pooled.CompareAndSwap(false, true) {
		return nil, &Error{Op: "pool", Errno: Errno(syscall.EBUSY), Detail: "the arena has a pool, whose memory is all of it: close that first, or take another arena"}
	}
	p := &Pool{
		arena: a, region: c.Region, memory: a.buf, unit: c.Smallest,
		levels: bits.Len(uint(c.Largest / c.Smallest)),
		table:  make([]poolBlock, count),
		full: &Error{
			Op: "pool", Errno: Errno(syscall.EAGAIN),
			Detail: "no buffer of this size is free",
		},
	}
	for i := range p.free {
		p.free[i] = noBlock
	}
	p.carve()
	p.open("pool", "", &a.handle)
	if c.Region != nil {
		p.adopt(&c.Region.handle)
	}
	return p, nil
}

// carve makes the whole memory free blocks, as large as they can be. It goes
// from the end to the beginning, so that the first buffers are the first ones.
func (p *Pool) carve() {
	level := p.levels - 1
	largest := len(p.table) >> level
	// What is left behind the largest blocks, in ever smaller ones.
	for l, at := level-1, int32(largest<<level); l >= 0; l-- {
		if len(p.table)-int(at) >= 1<<l {
			p.link(at, l)
			at += 1 << l
		}
	}
	for i := largest - 1; i >= 0; i-- {
		p.link(int32(i<<level), level)
	}
}

// Get returns a buffer of length bytes, whose content is whatever was there.
// ErrAgain says that none of the size is free: Put one and try again. It does not
// allocate, that error included. A length below 0, or above that of the largest
// buffer, is ErrInvalid.
func (p *Pool) Get(length int) (Buffer, error) {
	if err := p.enter(); err != nil {
		return Buffer{}, err
	}
	defer p.leave()
	level := 0
	if length > p.unit {
		level = bits.Len(uint((length - 1) / p.unit))
	}
	if length < 0 || level >= p.levels {
		return Buffer{}, &Error{
			Op: "pool", Errno: errnoInvalid,
			Detail: "buffers have 0 to " + strconv.Itoa(p.unit<<(p.levels-1)) + " bytes, not " + strconv.Itoa(length),
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	from := level
	for from < p.levels && p.free[from] == noBlock {
		from++
	}
	if from == p.levels {
		return Buffer{}, p.full
	}
	at := p.free[from]
	p.unlink(at)
	for from > level {
		from--
		p.link(at+1<<from, from)
	}
	b := &p.table[at]
	b.state, b.level = blockOut, int8(level)
	b.generation++
	p.out++
	begin := int(at) * p.unit
	return Buffer{p, p.memory[begin : begin+length : begin+p.unit<<level], at, b.generation}, nil
}

// Out is the number of buffers that have not been put back.
func (p *Pool) Out() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out
}

// Close ends the pool. ErrBusy says how many buffers are still out.
func (p *Pool) Close() error {
	return p.close(func() error {
		if n := p.Out(); n > 0 {
			return &Error{Op: "close of pool", Errno: Errno(syscall.EBUSY), Detail: strconv.Itoa(n) + " buffers have not been put back"}
		}
		p.arena.pooled.Store(false)
		return nil
	})
}

// Bytes is the buffer's memory, as long as Get was asked for; its capacity is that of
// the block. It must not be used after Put.
func (b Buffer) Bytes() []byte { return b.bytes }

// Descriptor is what operations carry for the buffer; 0 without a region.
func (b Buffer) Descriptor() Descriptor {
	if b.pool == nil || b.pool.region == nil {
		return 0
	}
	return b.pool.region.Descriptor()
}

// Remote is what to tell a peer about the buffer; see [Region.RemoteOf]. ErrInvalid
// says that the pool has no region.
func (b Buffer) Remote() (Remote, error) {
	if b.pool == nil || b.pool.region == nil {
		return Remote{}, &Error{Op: "remote address", Errno: errnoInvalid, Detail: "the buffer is not of a pool with a region"}
	}
	return b.pool.region.RemoteOf(b.bytes)
}

// Put gives the buffer back. No operation may use it any more. A buffer that was
// put back before is refused with ErrInvalid, and nothing happens to others.
func (b Buffer) Put() error {
	p := b.pool
	if p == nil {
		return &Error{Op: "pool", Errno: errnoInvalid, Detail: "this buffer is of no pool"}
	}
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &p.table[b.block]
	if t.state != blockOut || t.generation != b.generation {
		return &Error{Op: "pool", Errno: errnoInvalid, Detail: "the buffer has been put back before"}
	}
	p.out--
	at, level := b.block, int(t.level)
	t.state = blockInside
	// Its other half, if that is free as a whole, makes a larger block with it.
	for level < p.levels-1 {
		other := at ^ 1<<level
		if int(other) >= len(p.table) {
			break
		}
		if o := &p.table[other]; o.state != blockFree || int(o.level) != level {
			break
		}
		p.unlink(other)
		at = min(at, other)
		level++
	}
	p.link(at, level)
	return nil
}

// link makes a block the first of those that are free.
func (p *Pool) link(at int32, level int) {
	b := &p.table[at]
	b.state, b.level = blockFree, int8(level)
	b.prev, b.next = noBlock, p.free[level]
	if b.next != noBlock {
		p.table[b.next].prev = at
	}
	p.free[level] = at
}

func (p *Pool) unlink(at int32) {
	b := &p.table[at]
	if b.prev == noBlock {
		p.free[b.level] = b.next
	} else {
		p.table[b.prev].next = b.next
	}
	if b.next != noBlock {
		p.table[b.next].prev = b.prev
	}
	b.state = blockInside
}
