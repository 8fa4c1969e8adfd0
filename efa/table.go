package efa

// The id of a connection is chosen by the side that receives on it: the place in
// the table in the low bits, and a generation above, so that a message that
// comes late is not taken for one of the next connection in that place.
const (
	slotBits       = 18
	generationBits = 12
	maxSlots       = 1 << slotBits
)

type connTable struct {
	slots       []*Conn
	generations []uint16
	free        []uint32 // used as a queue: a place rests before it is used again
	count       int
}

// add gives a connection an id, which is never 0: that is the layout of a
// connection without a handshake.
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
		t.generations = append(t.generations, 0)
	}
	generation := t.generations[place] + 1
	if generation >= 1<<generationBits {
		generation = 1
	}
	t.generations[place] = generation
	t.slots[place] = c
	t.count++
	c.id = uint32(generation)<<slotBits | place
	return true
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
