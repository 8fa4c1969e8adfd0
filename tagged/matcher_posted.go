package tagged

// posted holds the receives that wait for a message.
type posted[R any] struct {
	seed *hashSeed
	// classes are the standard ones, then those of other masks that have
	// receives. idle are some that have none.
	classes, idle []*postedClass[R]
	count         int
	sequence      uint64 // of the last one posted
	spares        spares[receive[R]]
}

// receive is one that is posted, or was.
type receive[R any] struct {
	link     link[receive[R]]
	class    *postedClass[R]
	sequence uint64 // the order of posting, from 1; 0 if it is not posted
	value    R
}

type postedClass[R any] struct {
	class[receive[R]]
	receives  int
	permanent bool // a standard class
}

// maxIdle is how many classes without receives are kept for the next mask.
const maxIdle = 8

func (p *posted[R]) start(seed *hashSeed) {
	p.seed = seed
	for n := range standardClasses {
		c := p.newClass(standardWildcard(n))
		c.permanent = true
		p.classes = append(p.classes, c)
	}
}

func (p *posted[R]) newClass(w wildcard) *postedClass[R] {
	return &postedClass[R]{class: class[receive[R]]{wildcard: w, seed: p.seed}}
}

// mask returns the class of a mask that is not a standard one.
func (p *posted[R]) mask(w wildcard) *postedClass[R] {
	for _, c := range p.classes[standardClasses:] {
		if c.wildcard == w {
			return c
		}
	}
	var c *postedClass[R]
	if last := len(p.idle) - 1; last >= 0 {
		c, p.idle = p.idle[last], p.idle[:last]
		c.wildcard = w
	} else {
		c = p.newClass(w)
	}
	p.classes = append(p.classes, c)
	return c
}

func (p *posted[R]) post(k key, w wildcard, value R) *receive[R] {
	l := p.spares.get()
	if l == nil {
		r := new(receive[R])
		r.link.entry = r
		l = &r.link
	}
	r := l.entry
	var c *postedClass[R]
	if n, ok := w.standard(); ok {
		c = p.classes[n]
	} else {
		c = p.mask(w)
	}
	p.count++
	p.sequence++
	r.class, r.sequence, r.value = c, p.sequence, value
	c.receives++
	c.push(l, k)
	return r
}

// match returns the earliest receive that takes a message, or nil.
func (p *posted[R]) match(k key) *receive[R] {
	var earliest *receive[R]
	for _, c := range p.classes {
		if c.receives == 0 {
			continue
		}
		if l := c.find(k); l != nil && (earliest == nil || l.entry.sequence < earliest.sequence) {
			earliest = l.entry
		}
	}
	return earliest
}

// remove takes a receive out.
func (p *posted[R]) remove(r *receive[R]) R {
	c, value := r.class, r.value
	c.remove(&r.link)
	c.receives--
	if c.receives == 0 && !c.permanent {
		p.retire(c)
	}
	var none R
	r.class, r.sequence, r.value = nil, 0, none
	p.count--
	p.spares.put(&r.link, p.count)
	return value
}

// retire takes the class of a mask out that has no receives any more, so that
// messages do not ask it.
func (p *posted[R]) retire(c *postedClass[R]) {
	last := len(p.classes) - 1
	for n := standardClasses; n < last; n++ {
		if p.classes[n] == c {
			p.classes[n] = p.classes[last]
			break
		}
	}
	p.classes[last] = nil
	p.classes = p.classes[:last]
	if len(p.idle) < maxIdle {
		p.idle = append(p.idle, c)
	}
}
