package tagged

import "encoding/binary"

// A group is several short messages in the place of one length message. Its
// message ids follow each other, beginning with the one in its tag. Where the
// length would be it has the count of messages with the highest bit set, which
// no length has, and then each message: its length in 16 bits, little-endian,
// and its bytes. Both sides must have agreed to it.
const (
	groupMark = 1 << 63
	// GroupEntry is what each message of a group takes beside its own bytes.
	GroupEntry = 2
	// MaxGrouped is the longest message in bytes that a group can have.
	MaxGrouped = 1<<16 - 1
)

// BeginGroup makes the length message of one message of n bytes, which is at
// the start of dst, into a group of that one, and returns the size of the group.
// dst must have GroupEntry bytes of room behind the message, and n be at most
// MaxGrouped.
func BeginGroup(dst []byte, n int) (size int) {
	size = LengthSize + GroupEntry + n
	copy(dst[LengthSize+GroupEntry:size], dst[LengthSize:])
	binary.LittleEndian.PutUint64(dst, groupMark|1)
	binary.LittleEndian.PutUint16(dst[LengthSize:], uint16(n))
	return size
}

// AppendGroup adds a message to the group of the given size at the start of dst,
// and returns its new size, or 0 if there is no room for it. The message is head and
// rest, one behind the other.
func AppendGroup(dst []byte, size int, head, rest []byte) int {
	n := len(head) + len(rest)
	end := size + GroupEntry + n
	if end > len(dst) || n > MaxGrouped {
		return 0
	}
	binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(dst)+1)
	binary.LittleEndian.PutUint16(dst[size:], uint16(n))
	copy(dst[size+GroupEntry:end], head)
	copy(dst[size+GroupEntry+len(head):end], rest)
	return end
}

// IsGroup says whether a length message is a group, or what a bad peer would have
// taken for one.
func IsGroup(message []byte) bool {
	return len(message) >= LengthSize && message[LengthSize-1]&0x80 != 0
}

// Group is a group that is being read.
type Group struct {
	rest  []byte
	count uint64
}

// ParseGroup begins to read a group. Every error is a *LengthError: the count is
// not one that the bytes can hold, or is 0.
func ParseGroup(message []byte) (Group, error) {
	if len(message) < LengthSize {
		return Group{}, &LengthError{Problem: LengthTruncated, Limit: LengthSize, Got: len(message)}
	}
	g := Group{rest: message[LengthSize:], count: binary.LittleEndian.Uint64(message) &^ groupMark}
	if most := uint64(len(g.rest) / GroupEntry); g.count == 0 || g.count > most {
		return Group{}, &LengthError{Problem: LengthBadGroup, Length: int64(g.count), Limit: int64(most), Got: len(g.rest)}
	}
	return g, nil
}

// Len is the number of messages that are still to be read.
func (g *Group) Len() int { return int(g.count) }

// Next returns the next message, a part of what was parsed; ok is false after the
// last. An error is a *LengthError: a message goes beyond the end of the group,
// or bytes are left after the last.
func (g *Group) Next() (message []byte, ok bool, err error) {
	if g.count == 0 {
		if len(g.rest) > 0 {
			return nil, false, &LengthError{Problem: LengthBadGroup, Got: len(g.rest)}
		}
		return nil, false, nil
	}
	n := GroupEntry
	if len(g.rest) >= GroupEntry {
		n += int(binary.LittleEndian.Uint16(g.rest))
	}
	if n > len(g.rest) {
		return nil, false, &LengthError{Problem: LengthBadGroup, Length: int64(g.count), Limit: int64(n), Got: len(g.rest)}
	}
	message, g.rest = g.rest[GroupEntry:n:n], g.rest[n:]
	g.count--
	return message, true, nil
}
