package tagged

// unexpected holds the messages that wait for a receive. Each is in the four
// standard classes, and in one for each other mask that was asked for since
// there last was no message.
type unexpected[M any] struct {
	seed     *hashSeed
	standard [standardClasses]class[message[M]]
	// masks are the classes of other masks, the one used last first. Those from
	// active on hold nothing, and are there to be used again.
	masks  []*class[masked[M]]
	active int

	count        int
	spares       spares[message[M]]
	maskedSpares spares[masked[M]]
	maskedCount  int
}

// message is one that waits, or did.
type message[M any] struct {
	links  [standardClasses]link[message[M]]
	masked *masked[M] // of the active mask, see more
	value  M
}

// masked holds a message in the class of a mask.
type masked[M any] struct {
	link    link[masked[M]]
	class   *class[masked[M]]
	message *message[M]
	more    *masked[M] // the same message in another class
}

// maxMasks is how many classes of other masks there are: each makes a message
// that waits larger and slower.
const maxMasks = 16

func (u *unexpected[M]) start(seed *hashSeed) {
	u.seed = seed
	for n := range u.standard {
		u.standard[n] = class[message[M]]{wildcard: standardWildcard(n), seed: seed}
	}
}

func (u *unexpected[M]) add(k key, value M) {
	var m *message[M]
	if l := u.spares.get(); l != nil {
		m = l.entry
	} else {
		m = new(message[M])
		for n := range m.links {
			m.links[n].entry = m
		}
	}
	m.value = value
	u.count++
	for n := range u.standard {
		u.standard[n].push(&m.links[n], k)
	}
	for _, c := range u.masks[:u.active] {
		u.enter(c, m)
	}
}

// key returns the key of a message.
func (m *message[M]) key() key { return m.links[0].key }

// find returns the earliest message that a receive takes, or nil.
func (u *unexpected[M]) find(k key, w wildcard) *message[M] {
	if u.count == 0 {
		return nil
	}
	if n, ok := w.standard(); ok {
		if l := u.standard[n].find(k); l != nil {
			return l.entry
		}
	} else if l := u.mask(w).find(k); l != nil {
		return l.entry.message
	}
	return nil
}

// remove takes a message out.
func (u *unexpected[M]) remove(m *message[M]) {
	for n := range u.standard {
		u.standard[n].remove(&m.links[n])
	}
	u.count--
	for m.masked != nil {
		e := m.masked
		m.masked = e.more
		e.class.remove(&e.link)
		u.release(e)
	}
	for n := range m.links {
		m.links[n].next, m.links[n].prev, m.links[n].chain = nil, nil, nil
	}
	var none M
	m.value = none
	u.spares.put(&m.links[0], u.count)
	if u.count == 0 {
		u.active = 0
	}
}

// mask returns the class of a mask that is not a standard one, which it builds
// if there is none.
func (u *unexpected[M]) mask(w wildcard) *class[masked[M]] {
	n := 0
	for n < u.active && u.masks[n].wildcard != w {
		n++
	}
	built := n < u.active
	if !built {
		n = u.makeRoom()
	}
	c := u.masks[n]
	if n > 0 {
		copy(u.masks[1:n+1], u.masks[:n])
		u.masks[0] = c
	}
	if !built {
		c.wildcard = w
		// Those that have the same key here have the same context, and so come in
		// the order of arrival.
		u.standard[standardClasses-1].all(func(m *message[M]) { u.enter(c, m) })
	}
	return c
}

// makeRoom makes one more mask active, and returns its number. If there are
// too many, it is the one not used for longest.
func (u *unexpected[M]) makeRoom() int {
	if u.active == maxMasks {
		c := u.masks[maxMasks-1]
		u.standard[standardClasses-1].all(func(m *message[M]) { u.leave(c, m) })
		return maxMasks - 1
	}
	if u.active == len(u.masks) {
		u.masks = append(u.masks, &class[masked[M]]{seed: u.seed})
	}
	u.active++
	return u.active - 1
}

// enter puts a message into the class of a mask.
func (u *unexpected[M]) enter(c *class[masked[M]], m *message[M]) {
	var e *masked[M]
	if l := u.maskedSpares.get(); l != nil {
		e = l.entry
	} else {
		e = new(masked[M])
		e.link.entry = e
	}
	e.class, e.message, e.more = c, m, m.masked
	m.masked = e
	u.maskedCount++
	c.push(&e.link, m.key())
}

// leave takes a message out of the class of a mask.
func (u *unexpected[M]) leave(c *class[masked[M]], m *message[M]) {
	at := &m.masked
	for (*at).class != c {
		at = &(*at).more
	}
	e := *at
	*at = e.more
	c.remove(&e.link)
	u.release(e)
}

func (u *unexpected[M]) release(e *masked[M]) {
	e.class, e.message, e.more = nil, nil, nil
	u.maskedCount--
	u.maskedSpares.put(&e.link, u.maskedCount)
}
