package collective

import (
	"unsafe"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/cachedcopy"
)

// places are where the data of a call are.
type places struct {
	// large: the call has no slot of the cache.
	large bool
	// window is the memory of a large call that is not the caller's, if there is any.
	window *block
	// spaces are Input, Output and Scratch, and exposures what they are part of, if the
	// device wants to know.
	spaces    [3][]byte
	exposures [3]*efa.Exposure
	exposed   *efa.Exposure    // of what the caller gives or gets, for this call
	borrowed  [2]*efa.Exposure // of arenas
	// own: Output is the caller's, and nothing is copied there at the end. inPlace: so is
	// what the rank contributes. early: parts of the result are copied before the end, and handed
	// is the step up to which they are.
	own, inPlace, early bool
	handed              int
	// past: there is so much of them that they are copied past the caches.
	past bool
	// direct: peers put to memory of the caller's, at target. told: they know that, so the
	// caller has it back only when they are done with it. toldNear: some may not have looked yet.
	direct, told, toldNear bool
	target                 fabric.Remote
}

// leastDirect is how long a result has to be for others to put it to the caller's memory:
// below it, a copy costs less than telling them where that is.
const leastDirect = 16 << 10

// leastExposed is that for memory that is in no arena, and so exposed for the call: below it,
// a copy costs less than that.
const leastExposed = 64 << 10

// open finds the plan and the memory of a call.
func (g *group) open(p progress, c *call) (err error) {
	if err = g.prepare(p); err != nil {
		return err
	}
	if c.planned, err = g.plans.of(&c.shape, g.rank, len(c.output)); err != nil {
		return err
	}
	defer func() { c.early = c.handsEarly() }()
	output, scratch := aligned(c.planned.output), c.planned.scratch
	whole := output + scratch
	if g.size == 1 {
		// Nobody else looks at it.
		memory := make([]byte, whole)
		c.spaces = [3][]byte{c.input, memory[:c.planned.output], memory[output:]}
		return nil
	}
	// Of an uneven call, a rank does not know what the others have.
	if c.large = whole > g.slot || c.shape.uneven != nil; c.large {
		c.past = c.data() > mostCached
		return g.openLarge(p, c)
	}
	if whole > 0 {
		base := int(c.number%slots) * g.slot
		part := g.cache.memory[base : base+whole]
		c.spaces[schedule.Output] = part[:c.planned.output]
		c.spaces[schedule.Scratch] = part[output:]
		c.exposures[schedule.Output], c.exposures[schedule.Scratch] = g.cache.exposure, g.cache.exposure
	}
	return g.openInput(p, c)
}

// openLarge is open for a call that tells the others where its memory is.
func (g *group) openLarge(p progress, c *call) (err error) {
	if err := g.openOutput(p, c); err != nil {
		return err
	}
	output, scratch := 0, c.planned.plan.Scratch*c.shape.element
	if !c.own {
		output = aligned(len(c.output))
	}
	if output+scratch > 0 {
		c.window, err = g.windows.take(p, output+scratch)
		g.tellEnded(p)
		if err != nil {
			return err
		}
		if !c.own {
			c.spaces[schedule.Output], c.exposures[schedule.Output] = c.window.memory[:len(c.output)], c.window.exposure
		}
		c.spaces[schedule.Scratch], c.exposures[schedule.Scratch] = c.window.memory[output:output+scratch], c.window.exposure
	}
	return g.openInput(p, c)
}

// openOutput makes the caller's memory Output, if it may be: if the others do not put
// there, or it can be exposed to them, and if it is not Input, too, unless there is a plan
// for that.
func (g *group) openOutput(p progress, c *call) (err error) {
	output := c.output
	switch {
	case c.shape.Collective == schedule.CollectiveBcast && g.rank == c.shape.Root:
		// Its Output is of no use to anybody.
		output, c.inPlace = c.input, true
	case overlap(c.input, output):
		if c.inPlace = c.isInPlace(g.rank); !c.inPlace {
			return nil
		}
	}
	if c.planned.targeted && len(output) > 0 {
		e := g.exposeOutput(p, c, output)
		if e == nil {
			c.inPlace = false
			return nil
		}
		c.exposures[schedule.Output] = e
		c.direct = true
		if c.target, err = e.RemoteOf(output); err != nil {
			return err
		}
	}
	c.own, c.spaces[schedule.Output] = true, output
	if c.inPlace {
		c.planned, err = c.planned.inPlace(&c.shape, g.rank)
	}
	return err
}

// exposeOutput is for peers to put to the caller's memory. It is nil where they had better not.
func (g *group) exposeOutput(p progress, c *call, output []byte) *efa.Exposure {
	if len(output) < leastDirect {
		return nil
	}
	if e := p.Borrow(output); e != nil {
		c.borrowed[schedule.Output] = e
		return e
	}
	if len(output) < leastExposed || g.comm.Reactor().NeedsRegistration() {
		// What a device has to do for it costs more than the copy.
		return nil
	}
	if g.copiesTo(c, output) {
		// To write to pages of another process that are not mapped here costs more, too.
		return nil
	}
	e, err := p.Expose(output)
	if err != nil {
		// Then it is copied.
		return nil
	}
	c.exposed = e
	return e
}

// isInPlace says whether the contribution of a rank is where InPlace has it. It has
// something in common with the output.
func (c *call) isInPlace(rank int) bool {
	if c.shape.uneven != nil {
		return false
	}
	at := 0
	switch c.shape.Collective {
	case schedule.CollectiveReduce, schedule.CollectiveAllreduce:
	case schedule.CollectiveGather, schedule.CollectiveAllgather:
		at = rank * len(c.input)
	default:
		return false
	}
	return address(c.input) == address(c.output[at:])
}

// openInput sees to it that the device may read what the caller gives.
func (g *group) openInput(p progress, c *call) (err error) {
	space := schedule.Output
	if !c.inPlace {
		space = schedule.Input
		c.spaces[schedule.Input] = c.input
	}
	if len(c.input) == 0 || c.exposures[space] != nil || !g.comm.Reactor().NeedsRegistration() {
		return nil
	}
	if space == schedule.Input && g.staging != nil && len(c.input) <= g.slot {
		staged := g.staging.memory[int(c.number%slots)*g.slot:][:len(c.input)]
		cachedcopy.Copy(staged, c.input)
		c.spaces[schedule.Input], c.exposures[schedule.Input] = staged, g.staging.exposure
		return nil
	}
	if c.exposures[space] = p.Borrow(c.input); c.exposures[space] != nil {
		c.borrowed[schedule.Input] = c.exposures[space]
		return nil
	}
	c.exposed, err = p.Expose(c.input)
	c.exposures[space] = c.exposed
	return err
}

// tellReady tells a rank that puts to this one where that goes.
func (g *group) tellReady(p progress, c *call, source int) {
	from, fingerprint := c.opened(source)
	var all [mostNotices]comm.Notice
	notices := all[:1]
	n := comm.Notice{Tag: noticeTag(noticeReady, c.number), ID: fingerprint}
	switch {
	case c.direct:
		n.Remote, n.Length = c.target, scratchApart
		n.Remote.Address += uint64(from)
		c.told = true
		if c.window != nil {
			notices = all[:2]
			notices[0] = comm.Notice{Tag: noticeTag(noticeScratch, c.number), Remote: c.window.at(0)}
		}
	case c.window != nil:
		n.Remote = c.window.at(from)
		if !c.own {
			n.Length = uint64(aligned(len(c.output)) - from)
		}
	}
	notices[len(notices)-1] = n
	told := g.notifyNear(source, notices, c.window)
	if told {
		c.toldNear = true
	} else {
		for _, n := range notices {
			// If it cannot be sent, the rank is lost, and this one hears of that.
			told = g.comm.Notify(p, source, n) == nil
		}
	}
	if told && c.direct {
		g.members[source].shown = c.number + 1
	}
}

// giveBack ends what was exposed for a call.
func (c *call) giveBack() error {
	var err error
	for i, e := range c.borrowed {
		switch {
		case e == nil:
		case c.stranded:
			// The device still reads there.
			c.group.lent = append(c.group.lent, e)
		default:
			e.Return()
		}
		c.borrowed[i] = nil
	}
	switch {
	case c.exposed == nil:
	case c.stranded:
		c.group.exposed = append(c.group.exposed, c.exposed)
	default:
		if err = c.exposed.Close(); err != nil {
			// It is tried again at the end.
			c.group.exposed = append(c.group.exposed, c.exposed)
		}
	}
	c.exposed = nil
	return err
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// overlap says whether two slices have memory in common.
func overlap(a, b []byte) bool {
	return len(a) > 0 && len(b) > 0 && address(a) < address(b)+uintptr(len(b)) && address(b) < address(a)+uintptr(len(a))
}
