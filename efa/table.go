package efa

import (
	"crypto/rand"
	"encoding/binary"
	"iter"

	"github.com/weft-go/weft/tagged"
)

// The id of a connection is chosen by the side that receives on it: the place in
// the table in the low bits, and a generation above, so that a message that
// comes late is not taken for one of the next connection in that place. The
// highest bit is tagged.HandshakeID, which attached connections have not.
//
// Generations begin at random and go through all that there are in steps that
// differ from place to place: who knows ids of the past cannot count on from
// them, and an id comes again only after generations-1 others in its place.
const (
	slotBits       = 18
	generationBits = 11
	maxSlots       = 1 << slotBits
	generations    = 1<<generationBits - 1 // 0 is none
)

// connections are all that the reactor has, attached ones included. None may be
// added or removed meanwhile.
func (r *Reactor) connections() iter.Seq[*Conn] {
	return func(yield func(*Conn) bool) {
		for _, c := range r.table.slots {
			if c != nil && !yield(c) {
				return
			}
		}
		for _, id := range r.plain.ids {
			for _, c := range id.conns {
				if !yield(c) {
					return
				}
			}
		}
	}
}

type connTable struct {
	slots       []*Conn
	generations []generation // one for each slot
	free        []uint32     // used as a queue: a place rests before it is used again
	count       int
	random      []byte // from the system, not used yet
}

// generation is the last one of a place, and how the next one is come by.
type generation struct{ value, step uint16 }

// add gives a connection an id.
func (t *connTable) add(c *Conn, limit int) bool {
	if t.count >= limit {
		return false
	}
	var place uint32
	// Some places rest in the queue even if the table must grow for it.
	if len(t.free) > 64 || len(t.slots) >= limit {
		place = t.free[0]
		t.free = t.free[1:]
	} else {
		place = uint32(len(t.slots))
		t.slots = append(t.slots, nil)
		t.generations = append(t.generations, generation{t.draw(generations), t.drawStep()})
	}
	g := &t.generations[place]
	// From 1 to generations, round and round.
	g.value = (g.value+g.step-1)%generations + 1
	t.slots[place] = c
	t.count++
	c.id = tagged.HandshakeID | uint32(g.value)<<slotBits | place
	return true
}

// draw returns a number from 1 to most. It need not be quite even.
func (t *connTable) draw(most uint16) uint16 {
	if len(t.random) == 0 {
		t.random = make([]byte, 512)
		// It does not fail.
		_, _ = rand.Read(t.random)
	}
	n := binary.LittleEndian.Uint16(t.random)
	t.random = t.random[2:]
	return n%most + 1
}

// drawStep returns a step that comes through all generations: one that has no
// divisor in common with their number.
func (t *connTable) drawStep() uint16 {
	for {
		step := t.draw(generations - 1)
		a, b := uint16(generations), step
		for b > 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return step
		}
	}
}

func (t *connTable) find(id uint32) *Conn {
	place := id & (maxSlots - 1)
	if int(place) >= len(t.slots) {
		return nil
	}
	if c := t.slots[place]; c != nil && c.id == id {
		return c
	}
	return nil
}

func (t *connTable) remove(c *Conn) {
	place := c.id & (maxSlots - 1)
	// A connection whose handshake failed early has no place.
	if c.id != 0 && t.slots[place] == c {
		t.slots[place] = nil
		t.free = append(t.free, place)
		t.count--
	}
}
