package tagged

import "math/rand/v2"

// key is what a message or a receive is found by.
type key struct {
	tag             uint64
	context, source uint32
}

// wildcard says which bits of a key count.
type wildcard struct {
	tag    uint64
	source uint32 // all or none
}

func (w wildcard) of(k key) key {
	return key{tag: k.tag & w.tag, context: k.context, source: k.source & w.source}
}

// standardClasses are those of MPI, of receives with and without a source and a
// tag.
const standardClasses = 4

func standardWildcard(n int) wildcard {
	w := wildcard{tag: ^uint64(0), source: ^uint32(0)}
	if n&1 != 0 {
		w.source = 0
	}
	if n&2 != 0 {
		w.tag = 0
	}
	return w
}

// standard is the number of a standard class; ok is false if it is none.
func (w wildcard) standard() (n int, ok bool) {
	return int(^w.source&1 | uint32(^w.tag&2)), w.tag == 0 || w.tag == ^uint64(0)
}

// hashSeed makes the hash of a matcher its own, since peers choose tags. The
// hash is the multilinear one: with multipliers drawn at random its upper half
// is pairwise independent whatever the keys are, so no keys that are chosen
// without knowing the multipliers make lookups slow.
type hashSeed struct {
	base, context, source, low, high uint64
}

func newHashSeed() *hashSeed {
	return &hashSeed{rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64()}
}

func (s *hashSeed) hash(k key) uint32 {
	return uint32((s.base + s.context*uint64(k.context) + s.source*uint64(k.source) +
		s.low*uint64(uint32(k.tag)) + s.high*(k.tag>>32)) >> 32)
}

// link is what holds an entry in a class.
type link[E any] struct {
	entry      *E
	key        key      // the bits of it that count
	next, prev *link[E] // the circle of those with the same key
	chain      *link[E] // of a leader, the next one with the same slot
	hash       uint32
	follows    bool // it is not the first of its key
}

// reserve is how many slots a class keeps, and how many entries are kept to be
// used again, so that what comes and goes by so much does not allocate.
const reserve = 4096

// spares are links that hold nothing, to be used again with their entries.
type spares[E any] struct {
	first *link[E]
	count int
}

func (s *spares[E]) get() *link[E] {
	l := s.first
	if l != nil {
		s.first, l.next = l.next, nil
		s.count--
	}
	return l
}

// put keeps a link, and lets go of others if there are more than are in use,
// and a reserve: up to two, so that it keeps up with a use that falls.
func (s *spares[E]) put(l *link[E], used int) {
	l.next, l.prev, l.chain = s.first, nil, nil
	s.first = l
	s.count++
	for i := 0; i < 2 && s.count > used+reserve; i++ {
		s.get()
	}
}

const (
	segmentBits = 9
	segmentSize = 1 << segmentBits
	firstSlots  = 8
)

// class is a hash of entries by the bits of their keys that count, first in
// first out where those are the same. The first is the leader: it alone is in
// the chain of a slot. Slots are added and removed one at a time (linear
// hashing), so no operation takes longer for there being many.
type class[E any] struct {
	wildcard
	seed        *hashSeed
	slots, mask uint32 // mask is the least 2^n-1 that covers all slots
	leaders     int
	segments    []*[segmentSize]*link[E]
}

func (c *class[E]) head(slot uint32) **link[E] {
	return &c.segments[slot>>segmentBits][slot%segmentSize]
}

func (c *class[E]) slot(hash uint32) **link[E] {
	slot := hash & c.mask
	if lower := hash & (c.mask >> 1); slot >= c.slots {
		slot = lower
	}
	return c.head(slot)
}

// find returns the first entry with a key, or nil. The class must not be empty.
func (c *class[E]) find(k key) *link[E] {
	k = c.of(k)
	hash := c.seed.hash(k)
	l := *c.slot(hash)
	for l != nil && (l.hash != hash || l.key != k) {
		l = l.chain
	}
	return l
}

// push adds an entry behind those with the same key.
func (c *class[E]) push(l *link[E], k key) {
	k = c.of(k)
	hash := c.seed.hash(k)
	l.key, l.hash = k, hash
	if c.leaders > 0 {
		first := *c.slot(hash)
		for first != nil && (first.hash != hash || first.key != k) {
			first = first.chain
		}
		if first != nil {
			last := first.prev
			l.follows, l.next, l.prev = true, first, last
			last.next, first.prev = l, l
			return
		}
	}
	c.leaders++
	for c.leaders > int(c.slots/2) {
		c.split()
	}
	head := c.slot(hash)
	l.follows, l.next, l.prev, l.chain = false, l, l, *head
	*head = l
}

// remove takes an entry out, wherever it is.
func (c *class[E]) remove(l *link[E]) {
	if l.follows {
		l.prev.next, l.next.prev = l.next, l.prev
		return
	}
	at := c.slot(l.hash)
	for *at != l {
		at = &(*at).chain
	}
	if second := l.next; second != l {
		second.follows, second.chain, second.prev = false, l.chain, l.prev
		l.prev.next = second
		*at = second
		return
	}
	*at = l.chain
	c.leaders--
	if c.slots > reserve {
		c.shrink()
	}
}

// split adds a slot, and moves what belongs there.
func (c *class[E]) split() {
	if c.slots%segmentSize == 0 {
		c.segments = append(c.segments, new([segmentSize]*link[E]))
	}
	if c.slots == 0 {
		c.slots, c.mask = firstSlots, firstSlots-1
		return
	}
	slot := c.slots
	c.slots++
	if slot > c.mask {
		c.mask = c.mask<<1 | 1
	}
	to := c.head(slot)
	for from := c.head(slot & (c.mask >> 1)); *from != nil; {
		l := *from
		if l.hash&c.mask != slot {
			from = &l.chain
			continue
		}
		*from, l.chain, *to = l.chain, *to, l
	}
}

// shrink gives slots back where there are more than four for each leader: up to
// four, since a leader less is four slots less.
func (c *class[E]) shrink() {
	for i := 0; i < 4 && c.slots > reserve && c.leaders < int(c.slots/4); i++ {
		c.merge()
	}
}

// merge removes the last slot, and moves what is there to where it was before
// the split.
func (c *class[E]) merge() {
	c.slots--
	slot := c.slots
	from, to := c.head(slot), c.head(slot&(c.mask>>1))
	for *to != nil {
		to = &(*to).chain
	}
	*to, *from = *from, nil
	if slot == c.mask>>1+1 {
		c.mask >>= 1
	}
	if slot%segmentSize == 0 {
		last := len(c.segments) - 1
		c.segments[last] = nil
		c.segments = c.segments[:last]
	}
}

// all calls f with every entry, those with the same key in order.
func (c *class[E]) all(f func(*E)) {
	for slot := range c.slots {
		for leader := *c.head(slot); leader != nil; leader = leader.chain {
			f(leader.entry)
			for l := leader.next; l != leader; l = l.next {
				f(l.entry)
			}
		}
	}
}
