package efa

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"sync"
	"sync/atomic"

	"github.com/weft-go/weft/fabric"
)

// Buffer is memory of a reactor's that its device sends from as it is: it is
// outside the Go heap, and registered where the device asks for that. Whoever got
// it owns it until Release, until a WriteBuffer that returns no error, or until the
// reactor is closed and it has been given back; it is for one goroutine at a time. After
// that neither the Buffer nor what Bytes returned may be used: they are the next owner's.
type Buffer struct {
	pool       *lentPool
	chunk      *lentChunk
	memory     []byte // all of it
	bytes      []byte
	descriptor fabric.Descriptor
	class      int
	// taken: it is the caller's, and neither the pool's nor a connection's.
	taken atomic.Bool
}

// Bytes is the memory: as many bytes as were asked for, with what was in them
// before.
func (b *Buffer) Bytes() []byte { return b.bytes }

// SetLen makes the message shorter or longer, up to cap(b.Bytes()); beyond that it panics, as
// slicing does.
func (b *Buffer) SetLen(n int) { b.bytes = b.memory[:n] }

// Release gives the buffer back unused. If WriteBuffer has taken it, or it has gone back
// already, nothing happens, as long as nobody else has got it.
func (b *Buffer) Release() {
	if b.taken.CompareAndSwap(true, false) {
		b.pool.give(b)
	}
}

// Buffer returns a buffer of n bytes, for WriteBuffer on any connection of the
// reactor. It does not allocate where buffers of about the size have been given
// back. A *BufferError says that Config.MaxBufferBytes are out already, and is ErrWouldBlock
// if there is room when others are given back. Any goroutine may call it.
func (r *Reactor) Buffer(n int) (*Buffer, error) {
	if n < 0 {
		return nil, &BufferError{Size: n, Limit: r.config.MaxBufferBytes}
	}
	class := lentClass(n)
	b, err := r.lent.take(class)
	if b == nil && err == nil {
		if err = r.growLent(class); err == nil {
			b, err = r.lent.take(class)
		}
	}
	if err != nil {
		var full *BufferError
		if errors.As(err, &full) {
			full.Size = n
		}
		return nil, err
	}
	b.SetLen(n)
	return b, nil
}

// Buffer is that of the connection's reactor.
func (c *Conn) Buffer(n int) (*Buffer, error) { return c.reactor.Buffer(n) }

// WriteBuffer sends what is in the buffer as one message, without copying unless
// it is up to the eager limit, and returns as soon as there is credit for it: the
// buffer is the connection's from then on, and goes back by itself. If there is an
// error, nothing was sent, and the buffer is still the caller's. Errors are those
// of WriteMessage, but never an *InFlightError.
func (c *Conn) WriteBuffer(ctx context.Context, b *Buffer) error {
	if b.pool != &c.reactor.lent {
		return &BufferError{Size: len(b.bytes), Foreign: true}
	}
	if err := c.checkWrite(ctx, b.bytes); err != nil {
		return err
	}
	if !b.taken.CompareAndSwap(true, false) {
		return &BufferError{Size: len(b.bytes), Gone: true}
	}
	k := newCall(c, b.bytes)
	k.lent = b
	k.request.run = startWrite
	_, err := c.wait(ctx, k)
	if err != nil {
		b.taken.Store(true)
	}
	return err
}

// BufferError is about a buffer that cannot be had, is of another reactor, or was given
// back or written already.
type BufferError struct {
	Size    int
	Out     int64 // bytes of buffers that are out
	Limit   int64
	Foreign bool
	Gone    bool
}

func (e *BufferError) Error() string {
	if e.Foreign {
		return "efa: the buffer is of another reactor"
	}
	if e.Gone {
		return "efa: the buffer was given back or written already"
	}
	return fmt.Sprintf("efa: a buffer of %d bytes: %d bytes of buffers are out, and %d may be", e.Size, e.Out, e.Limit)
}

// Is makes the error ErrWouldBlock where there is room when others are given back.
func (e *BufferError) Is(target error) bool {
	return target == ErrWouldBlock && !e.Foreign && !e.Gone && e.Size >= 0 && fitsLent(lentClass(e.Size), 0, e.Limit)
}

// lentClass is the power of two of a buffer's memory.
func lentClass(size int) int { return max(bits.Len(uint(max(size, 1)-1)), smallestLent) }

// fitsLent says whether a buffer can be out beside others.
func fitsLent(class int, out, limit int64) bool {
	return class < bits.Len64(uint64(limit)) && out+1<<class <= limit
}

// lentPool has buffers by powers of two. It keeps what it has made. Any goroutine
// may use it.
type lentPool struct {
	mu     sync.Mutex
	free   [64][]*Buffer
	chunks []*lentChunk
	out    int64
	limit  int64
	closed bool
}

// lentChunk is an arena with buffers of one class.
type lentChunk struct {
	arena *fabric.Arena
	out   int
	rails []fabric.Descriptor // for each rail, where devices need that
}

// descriptorFor is what an operation on the buffer has.
func (b *Buffer) descriptorFor(op *operation) fabric.Descriptor {
	if l := op.rail(); l != nil && len(b.chunk.rails) > 0 {
		return b.chunk.rails[l.index]
	}
	return b.descriptor
}

const (
	smallestLent = 12        // 4 KiB
	lentAtATime  = 256 << 10 // bytes, or one buffer
)

// take returns a buffer, or neither that nor an error if one must be made.
func (p *lentPool) take(class int) (*Buffer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, net.ErrClosed
	case !fitsLent(class, p.out, p.limit):
		return nil, &BufferError{Out: p.out, Limit: p.limit}
	}
	last := len(p.free[class]) - 1
	if last < 0 {
		return nil, nil
	}
	b := p.free[class][last]
	p.free[class] = p.free[class][:last]
	p.out += 1 << class
	b.chunk.out++
	b.taken.Store(true)
	return b, nil
}

func (p *lentPool) give(b *Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out -= 1 << b.class
	b.chunk.out--
	if p.closed {
		if b.chunk.out == 0 {
			_ = b.chunk.arena.Close()
		}
		return
	}
	p.free[b.class] = append(p.free[b.class], b)
}

// growLent makes buffers of a class.
func (r *Reactor) growLent(class int) error {
	size := 1 << class
	arena, err := fabric.NewArena(max(size, lentAtATime))
	if err != nil {
		return err
	}
	var descriptor fabric.Descriptor
	chunk := &lentChunk{arena: arena}
	if r.attributes.NeedsRegistration {
		r.do(func() {
			if err = r.broken; err != nil {
				return
			}
			var region fabric.Registration
			if region, err = r.device.Register(arena.Bytes()); err != nil {
				return
			}
			descriptor = region.Descriptor()
			chunk.rails, err = r.registerOnRails(arena.Bytes())
		})
	}
	if err != nil {
		return errors.Join(err, arena.Close())
	}
	p := &r.lent
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.Join(net.ErrClosed, arena.Close())
	}
	p.chunks = append(p.chunks, chunk)
	for memory := arena.Bytes(); len(memory) >= size; memory = memory[size:] {
		p.free[class] = append(p.free[class], &Buffer{
			pool: p, chunk: chunk, memory: memory[:size:size], descriptor: descriptor, class: class,
		})
	}
	return nil
}

// close unmaps what is not out; the rest follows when it is given back. The device
// has been closed.
func (p *lentPool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all error
	for _, chunk := range p.chunks {
		if chunk.out == 0 {
			all = errors.Join(all, chunk.arena.Close())
		}
	}
	p.closed, p.chunks, p.free = true, nil, [64][]*Buffer{}
	return all
}
