package efa

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/weft-go/weft/internal/cacheline"
)

// A ring is memory to which one process writes messages, and from which another reads them. An
// entry is a cache line, of which the stamp is written last, so that the death of the one leaves
// nothing behind that the other would wait for:
//
//	stamp  8 bytes: how often the ring has come to this entry, and below that the size
//	tag    8
//	data   48: the message, if that is not longer, or in which block it is
//
// Before the entries is a cookie, by which it is known that it is this ring, and in a line of its
// own how many entries the reader has taken, as that says every takenEvery; behind them are the
// blocks. Neither side trusts what the other has written.
const (
	lineSize    = 64
	entryData   = 16 // where data begin
	mostInLine  = lineSize - entryData
	ringEntries = 128
	takenEvery  = ringEntries / 8
	// blockSize is the longest message of a ring, and ringBlocks how many there may be above
	// mostInLine.
	blockSize  = 4096 + lineSize
	ringBlocks = 16

	takenAt   = lineSize
	entriesAt = 2 * lineSize
	blocksAt  = entriesAt + ringEntries*lineSize
	pageSize  = 4096
	ringSize  = (blocksAt + ringBlocks*blockSize + pageSize - 1) &^ (pageSize - 1)
)

func wordAt(b []byte, offset int) *uint64 { return (*uint64)(unsafe.Pointer(&b[offset])) }

// cookieOf is what a ring is known by.
func cookieOf(ring []byte) uint64 { return binary.LittleEndian.Uint64(ring) }

func entryOf(ring []byte, number uint64) []byte {
	return ring[entriesAt+number%ringEntries*lineSize:][:lineSize]
}

// stampOf is that of an entry, with the size of its message.
func stampOf(number uint64, size int) uint64 {
	return (number/ringEntries+1)&(1<<32-1)<<32 | uint64(size)
}

// ringWriter is the writer's side.
type ringWriter struct {
	ring  []byte
	sent  uint64 // entries
	taken uint64 // of these, as far as is known
	// blocks is how many have been used, and usedUntil how many entries there were with the last
	// that has each.
	blocks    uint64
	usedUntil [ringBlocks]uint64
}

// put writes a message, in three parts, if there is room for it.
func (w *ringWriter) put(tag uint64, first, second, third []byte) bool {
	size := len(first) + len(second) + len(third)
	if size > blockSize || w.sent-w.taken >= ringEntries && !w.hasRoom(w.sent-ringEntries+1) {
		return false
	}
	entry := entryOf(w.ring, w.sent)
	data := entry[entryData:]
	if size > mostInLine {
		block := w.blocks % ringBlocks
		if until := w.usedUntil[block]; until > w.taken && !w.hasRoom(until) {
			return false
		}
		binary.LittleEndian.PutUint64(data, block)
		data = w.ring[blocksAt+block*blockSize:][:blockSize]
		w.blocks++
		w.usedUntil[block] = w.sent + 1
	}
	n := copy(data, first)
	n += copy(data[n:], second)
	copy(data[n:], third)
	binary.LittleEndian.PutUint64(entry[8:], tag)
	atomic.StoreUint64(wordAt(entry, 0), stampOf(w.sent, size))
	w.sent++
	// The line of the next entry comes from the reader while something else is done.
	cacheline.Fetch(&entryOf(w.ring, w.sent)[0])
	return true
}

// hasRoom says whether so many entries have been taken.
func (w *ringWriter) hasRoom(taken uint64) bool {
	// No more than were sent, whatever the reader says.
	w.taken = max(w.taken, min(atomic.LoadUint64(wordAt(w.ring, takenAt)), w.sent))
	return w.taken >= taken
}

// ringReader is the reader's side.
type ringReader struct {
	ring  []byte
	taken uint64
	wrong bool // the writer has written what it must not
}

// next copies the next message to dst, of blockSize bytes, and returns it, if there is one.
func (r *ringReader) next(dst []byte) (tag uint64, message []byte, ok bool) {
	entry := entryOf(r.ring, r.taken)
	stamp := atomic.LoadUint64(wordAt(entry, 0))
	if stamp>>32 != stampOf(r.taken, 0)>>32 || r.wrong {
		return 0, nil, false
	}
	size := stamp & (1<<32 - 1)
	tag = binary.LittleEndian.Uint64(entry[8:])
	data := entry[entryData:]
	if size > mostInLine {
		block := binary.LittleEndian.Uint64(data)
		if size > blockSize || block >= ringBlocks {
			r.wrong = true
			return 0, nil, false
		}
		data = r.ring[blocksAt+block*blockSize:]
	}
	// Its writer could still change it.
	message = dst[:copy(dst, data[:size])]
	if r.taken++; r.taken%takenEvery == 0 {
		atomic.StoreUint64(wordAt(r.ring, takenAt), r.taken)
	}
	return tag, message, true
}
