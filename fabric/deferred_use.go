package fabric

import (
	"strconv"
	"sync"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// A provider begins a deferred operation on its own, whenever a counter is
// updated, and does not look whether the endpoint is still there. So all that
// may update a counter that something waits for must end with the endpoint of
// what waits: counters that trigger each other form a group, a group belongs to
// one endpoint, and once that is closed nobody updates the group any more.

// domainDeferred is what a domain knows of deferred work. Its lock guards the
// deferredUse of all counters of the domain.
type domainDeferred struct {
	sync.Mutex
	flushes uint64
	// left are operations that completion queues may still name: their memory
	// goes when these have gone, with the domain.
	left []cgo.Work
}

// release frees what was left when the domain is closed.
func (d *domainDeferred) release() {
	d.Lock()
	defer d.Unlock()
	for _, w := range d.left {
		w.Free()
	}
	d.left = nil
}

// deferredUse is what a counter has to do with deferred work.
type deferredUse struct {
	leader *Counter // of the group; nil: the counter itself

	// Of leaders only.
	endpoint *Endpoint // whose operations the group counts or triggers
	many     bool      // it counts what several endpoints do
	triggers bool      // something has waited for a counter of the group

	// targets are the counters that deferred work on this one will change.
	targets map[*Counter]int

	// Of a counter of completions of deferred work: how many were queued since it
	// stood at base, and how many of these have not been closed.
	queued, open, base uint64
}

func (c *Counter) group() *deferredUse {
	for c.deferred.leader != nil {
		c = c.deferred.leader
	}
	return &c.deferred
}

func (c *Counter) misused(op, detail string) error {
	return c.invalid(op, detail)
}

const (
	severalEndpoints = "the counter counts for several endpoints, and operations can wait only for one that counts for theirs"
	oneEndpoint      = "operations of another endpoint wait for the counter"
)

// countFor notes that counters are about to be bound to an endpoint: all of them, or none
// where one cannot be.
func (d *Domain) countFor(e *Endpoint, counters []CounterBinding) error {
	const op = "fi_ep_bind of counter"
	d.deferred.Lock()
	defer d.deferred.Unlock()
	for _, b := range counters {
		c := b.Counter
		if c.deferred.open > 0 {
			return c.busy(op, "it counts deferred operations")
		}
		if g := c.group(); g.triggers && g.endpoint != nil && g.endpoint != e {
			return c.misused(op, oneEndpoint)
		}
	}
	for _, b := range counters {
		switch g := b.Counter.group(); g.endpoint {
		case nil:
			g.endpoint = e
		case e:
		default:
			g.many = true
		}
		b.Counter.bound = true
	}
	return nil
}

// countRegion notes that the counter is about to be bound to a region, in which
// any endpoint may write.
func (c *Counter) countRegion() error {
	c.domain.deferred.Lock()
	defer c.domain.deferred.Unlock()
	if c.deferred.open > 0 {
		return c.busy("fi_mr_bind", "it counts deferred operations")
	}
	g := c.group()
	if g.triggers {
		return c.misused("fi_mr_bind", oneEndpoint)
	}
	c.bound, g.many = true, true
	return nil
}

// join makes two counters one group, with an endpoint where e is not nil.
func (c *Counter) join(op string, other *Counter, e *Endpoint) error {
	a, b := c.group(), other.group()
	if a.many || b.many {
		return c.misused(op, severalEndpoints)
	}
	for _, g := range []*deferredUse{a, b} {
		switch {
		case g.endpoint == nil:
		case e == nil:
			e = g.endpoint
		case e != g.endpoint:
			return c.misused(op, oneEndpoint)
		}
	}
	if a != b {
		l := c
		for l.deferred.leader != nil {
			l = l.deferred.leader
		}
		b.leader = l
	}
	a.endpoint, a.triggers = e, true
	if e != nil {
		e.awaited = true
	}
	return nil
}

// reaches says whether an update of the counter may end in one of other.
func (c *Counter) reaches(other *Counter, seen map[*Counter]bool) bool {
	if c == other {
		return true
	}
	if seen[c] {
		return false
	}
	seen[c] = true
	for t := range c.deferred.targets {
		if t.reaches(other, seen) {
			return true
		}
	}
	return false
}

// fires must come before an update of the counter by this side. It returns the
// endpoint that the caller leaves afterwards, or nil.
func (c *Counter) fires(op string, changes bool) (*Endpoint, error) {
	c.domain.deferred.Lock()
	defer c.domain.deferred.Unlock()
	if changes && c.deferred.open > 0 {
		return nil, c.busy(op, "it counts "+strconv.FormatUint(c.deferred.open, 10)+" deferred operations")
	}
	g := c.group()
	if !g.triggers || g.endpoint == nil {
		return nil, nil
	}
	if err := g.endpoint.enter(); err != nil {
		return nil, &Error{
			Op: op, Provider: c.provider, Errno: errnoClosed,
			Detail: "operations of an endpoint that is closed wait for the counter",
		}
	}
	return g.endpoint, nil
}

// Trigger is the moment at which a deferred operation begins: when the counter
// has reached the threshold. An operation whose time has come already begins at
// once.
type Trigger struct {
	Counter   *Counter // of the same domain
	Threshold uint64   // of its successes; on sockets, 2^31-1 at most
}

func notTriggering(op, provider string) error {
	return &Error{
		Op: op, Provider: provider, Errno: Errno(syscall.EOPNOTSUPP),
		Detail: "the info does not have the capability TriggeredOperations (FI_TRIGGER)",
	}
}

// wrong checks a trigger in a domain, for an info.
func (t Trigger) wrong(op string, d *Domain, i *Info) error {
	invalid := func(detail string) error {
		return d.invalid(op, detail)
	}
	switch {
	case i.a.Caps&cgo.CapTrigger == 0:
		return notTriggering(op, d.provider)
	case t.Counter == nil:
		return invalid("there is no counter to wait for")
	case t.Counter.domain != d:
		return invalid("the counter is of another domain")
	}
	if detail := beyondCounting(d.provider, t.Threshold); detail != "" {
		return invalid(detail)
	}
	return nil
}
