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
//	data   48: the message, if that is not longer, or where in the yard it is
//
// Before the entries is a cookie, by which it is known that it is this ring, and in a line of its
// own how many entries the reader has taken, as that says every takenEvery, or more often if they are
// long. Behind them is the yard, which is used round and round, too. Neither side trusts what the
// other has written.
const (
	lineSize    = 64
	entryData   = 16 // where data begin
	mostInLine  = lineSize - entryData
	ringEntries = 128
	takenEvery  = 8
	// mostInRing is the longest message.
	mostInRing = 16<<10 + lineSize
	yardSize   = 112 << 10

	takenAt   = lineSize
	entriesAt = 2 * lineSize
	yardAt    = entriesAt + ringEntries*lineSize
	pageSize  = 4096
	ringSize  = (yardAt + yardSize + pageSize - 1) &^ (pageSize - 1)
)

func wordAt(b []byte, offset int) *uint64 { return (*uint64)(unsafe.Pointer(&b[offset])) }

// cookieOf is what a ring is known by.
func cookieOf(ring []byte) uint64 { return binary.LittleEndian.Uint64(ring) }

func entryOf(ring []byte, number uint64) []byte {
	return ring[entriesAt+number%ringEntries*lineSize:][:lineSize]
}

// lapOf is how often the ring comes to an entry, with that number.
func lapOf(number uint64) uint64 { return (number/ringEntries + 1) & (1<<32 - 1) }

// ringWriter is the writer's side.
type ringWriter struct {
	ring  []byte
	sent  uint64 // entries
	taken uint64 // of these, as far as is known
	// used is how much of the yard has been, all laps together, and ends what that was with each
	// entry.
	used uint64
	ends [ringEntries]uint64
}

// resume goes on where the last writer of a ring was, which the entries say: those of its lap come
// first. That one may have ended before all was taken; what it had in the yard is not known, and so
// that has no room until then.
func resume(ring []byte) ringWriter {
	w := ringWriter{ring: ring}
	lap := func(number uint64) uint64 { return atomic.LoadUint64(wordAt(entryOf(ring, number), 0)) >> 32 }
	if first := lap(0); first > 0 {
		for w.sent = 1; w.sent < ringEntries && lap(w.sent) == first; w.sent++ {
			continue
		}
		w.sent += (first - 1) * ringEntries
		w.used = yardSize
		w.ends[(w.sent-1)%ringEntries] = w.used
	}
	w.learns()
	return w
}

// put writes a message, in three parts, if there is room for it.
func (w *ringWriter) put(tag uint64, first, second, third []byte) bool {
	size := len(first) + len(second) + len(third)
	if size > mostInRing || w.sent-w.taken >= ringEntries && !w.learns() {
		return false
	}
	entry := entryOf(w.ring, w.sent)
	data := entry[entryData:]
	if size > mostInLine {
		at, ok := w.room(uint64(size))
		if !ok {
			return false
		}
		binary.LittleEndian.PutUint64(data, at)
		data = w.ring[yardAt+at:][:size]
	}
	w.ends[w.sent%ringEntries] = w.used
	n := copy(data, first)
	n += copy(data[n:], second)
	copy(data[n:], third)
	binary.LittleEndian.PutUint64(entry[8:], tag)
	atomic.StoreUint64(wordAt(entry, 0), lapOf(w.sent)<<32|uint64(size))
	w.sent++
	// The line of the next entry comes from the reader while something else is done.
	cacheline.Fetch(&entryOf(w.ring, w.sent)[0])
	return true
}

// learns looks how many entries have been taken, and says whether those are more.
func (w *ringWriter) learns() bool {
	// No more than were sent, whatever the reader says.
	known := w.taken
	w.taken = max(known, min(atomic.LoadUint64(wordAt(w.ring, takenAt)), w.sent))
	return w.taken > known
}

// room finds a place in the yard.
func (w *ringWriter) room(size uint64) (at uint64, ok bool) {
	begin := (w.used + lineSize - 1) &^ (lineSize - 1)
	if rest := yardSize - begin%yardSize; rest < size {
		begin += rest
	}
	for begin+size > w.freed()+yardSize {
		if !w.learns() {
			return 0, false
		}
	}
	w.used = begin + size
	return begin % yardSize, true
}

// freed is how much of the yard was used with entries that have been taken.
func (w *ringWriter) freed() uint64 {
	switch w.taken {
	case w.sent:
		return w.used
	case 0:
		return 0
	}
	return w.ends[(w.taken-1)%ringEntries]
}

// ringReader is the reader's side.
type ringReader struct {
	ring  []byte // nil: nothing is read any more
	taken uint64
	// unsaid is how much of the yard has been read since the writer was told.
	unsaid uint64
}

// isThere says whether there is another message.
func (r *ringReader) isThere() bool {
	return r.ring != nil && atomic.LoadUint64(wordAt(entryOf(r.ring, r.taken), 0))>>32 == lapOf(r.taken)
}

// next copies the next message, which is there, to dst, of mostInRing bytes. ok is false if it is none:
// then nothing is read any more.
func (r *ringReader) next(dst []byte) (tag uint64, message []byte, ok bool) {
	entry := entryOf(r.ring, r.taken)
	// Its writer could still change it.
	size := atomic.LoadUint64(wordAt(entry, 0)) & (1<<32 - 1)
	tag = binary.LittleEndian.Uint64(entry[8:])
	data := entry[entryData:]
	if size > mostInLine {
		at := binary.LittleEndian.Uint64(data)
		if size > mostInRing || at > yardSize-size {
			r.ring = nil
			return 0, nil, false
		}
		data = r.ring[yardAt+at:]
	}
	message = dst[:copy(dst, data[:size])]
	if size > mostInLine {
		r.unsaid += size
	}
	if r.taken++; r.taken%takenEvery == 0 || r.unsaid > yardSize/4 {
		r.unsaid = 0
		atomic.StoreUint64(wordAt(r.ring, takenAt), r.taken)
	}
	return tag, message, true
}
