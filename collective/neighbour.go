package collective

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/internal/cacheline"
	"github.com/weft-go/weft/internal/hostmemory"
)

// Where all ranks are processes of one host (efa.Reactor.SameHost), the cache of each is memory
// that the others map: who puts to it copies there, and leaves the word of the put in a ring
// of its own behind the cache, at which its peer looks while it has calls. That takes a third of
// what the device takes, with the same words, memory and plans; what has no room in a ring
// goes by the device.
//
// A ring has one writer and one reader, which are different processes, so that the death of
// one leaves nothing behind that a third would wait for. An entry is a cache line, of which the
// stamp is written last:
//
//	stamp  8 bytes: how often the ring has come to this entry, and below that the word
//	offset 4: where data are to go in the cache, or releasedMark or noticeMark
//	length 4: of data
//	data   48: what is short enough for that
//
// What is longer is where it is to be before the stamp is written. The memory is sealed against
// growing smaller, and nothing that is read from it is trusted.

const (
	entrySize   = 64
	entryData   = 16 // where data begin
	mostData    = entrySize - entryData
	ringEntries = 16
	// A ring begins with how many entries its reader has taken, as that says every
	// takenEvery.
	ringSize   = entrySize * (1 + ringEntries)
	takenEvery = ringEntries / 4
	// releasedMark: the data are how many calls the writer has done, and noticeMark: they are
	// a notice.
	releasedMark = 1<<32 - 1
	noticeMark   = releasedMark - 1
	// headerSize is that of what is before the rings: a cookie.
	headerSize = entrySize
)

// sharedName is what the system calls memory that is mapped.
const sharedName = "weft-collective"

// neighbourhood is what a group has where ranks map each other's caches.
type neighbourhood struct {
	cookie uint64 // of this rank's cache
	// wanted: something may come that is waited for. looking: the reactor looks here; often is
	// at how many places, if often.
	wanted, looking bool
	often           int
	inboxes         []inbox
	// last is where this rank has put last.
	last *outbox
}

// inbox is the ring of a rank that may have mapped this one's cache.
type inbox struct {
	rank  int
	ring  []byte
	taken uint64
}

// outbox is the cache of another rank, mapped, and the ring for what this one puts there.
type outbox struct {
	owner   uint64 // the process
	cookie  uint64
	memory  []byte
	windows []*mapping
	process *attachment // nil if this one cannot write there
	ring    []byte
	sent    uint64
	taken   uint64 // of these, as far as is known
}

func wordAt(b []byte, offset int) *uint64 { return (*uint64)(unsafe.Pointer(&b[offset])) }

// A process has no more than mostShared caches that others map, of no more than largestShared
// bytes: each takes a descriptor, and a mapping of each other rank, and the system gives all of it
// at once.
const (
	mostShared    = 128
	largestShared = 8 << 20
)

// headerAt is where the header of the rings is in a cache, and cacheSize the size of one that
// has them.
func (g *group) headerAt() int  { return g.reserved() + aligned(g.size) }
func (g *group) cacheSize() int { return g.headerAt() + headerSize + g.size*ringSize }

// ringAt is the part of a cache to which a rank writes.
func (g *group) ringAt(cache []byte, rank int) []byte {
	return cache[g.headerAt()+headerSize+rank*ringSize:][:ringSize]
}

// showCache writes to the cache how it is known that it is this one, and invites those who have
// invited this rank before it had one.
func (g *group) showCache(p progress) {
	var cookie [8]byte
	_, _ = rand.Read(cookie[:]) // never fails
	g.near.cookie = binary.LittleEndian.Uint64(cookie[:])
	binary.LittleEndian.PutUint64(g.cache.memory[g.headerAt():], g.near.cookie)
	ownCaches.Lock()
	ownCaches.groups[g.near.cookie] = g
	ownCaches.Unlock()
	for rank := range g.members {
		if g.members[rank].near != nil {
			g.invite(p, rank)
		}
	}
}

// invite tells a rank how to map the cache, once.
func (g *group) invite(p progress, rank int) {
	if g.cache == nil || g.cache.shared == nil || g.members[rank].invited {
		return
	}
	g.members[rank].invited = true
	n := comm.Notice{Tag: noticeTag(noticeShared, 0)}
	n.ID, n.Length = g.cache.shared.Name()
	n.Remote.Key, n.Remote.Address = g.near.cookie, g.cacheAddress()
	if g.comm.Notify(p, rank, n) == nil {
		g.near.inboxes = append(g.near.inboxes, inbox{rank: rank, ring: g.ringAt(g.cache.memory, rank)})
		g.attend(p)
	}
}

// ownCaches are the groups of this process whose caches others may map, by the cookies of these.
var ownCaches = struct {
	sync.Mutex
	groups map[uint64]*group
}{groups: make(map[uint64]*group)}

// offers says whether a cache can be that of a rank: what is known to be another's, of this process above
// all, somebody else has heard of. Otherwise this process would write, for that one, to memory of its own.
func (g *group) offers(rank int, cookie uint64) bool {
	for i := range g.members {
		if near := g.members[i].near; near != nil && near.cookie == cookie {
			return false
		}
	}
	ownCaches.Lock()
	defer ownCaches.Unlock()
	owner := ownCaches.groups[cookie]
	return owner == nil || owner != g && owner.rank == rank && owner.size == g.size
}

// invited maps the cache of a rank. Where that cannot be, what is put there goes by the device.
// That rank is invited, too: if nothing is put from there, this one has to hear what is released.
func (g *group) invited(p progress, source int, n comm.Notice) {
	from := &g.members[source]
	if from.near != nil || g.slot == 0 || !g.sameHost || !g.offers(source, n.Remote.Key) {
		return
	}
	memory, err := hostmemory.Map(sharedName, n.ID, n.Length, g.cacheSize())
	if err != nil {
		return
	}
	if binary.LittleEndian.Uint64(memory[g.headerAt():]) != n.Remote.Key {
		_ = hostmemory.Unmap(memory)
		return
	}
	from.near = &outbox{owner: n.ID, cookie: n.Remote.Key, memory: memory, ring: g.ringAt(memory, g.rank)}
	from.near.attachTo(n.ID, n.Remote.Address, g.headerAt(), n.Remote.Key)
	g.stats.Neighbours++
	g.invite(p, source)
}

// room is for how many entries there is room.
func (o *outbox) room() int {
	if o.sent-o.taken >= ringEntries-mostNotices {
		// No more than was sent, whatever the reader says.
		o.taken = min(atomic.LoadUint64(wordAt(o.ring, 0)), o.sent)
	}
	return int(ringEntries - min(o.sent-o.taken, ringEntries))
}

// entry is where the next entry goes, or nil if there is no room.
func (o *outbox) entry() []byte {
	if o.room() == 0 {
		return nil
	}
	return o.next()
}

// next is where the next entry goes, if there is room.
func (o *outbox) next() []byte { return o.ring[entrySize*(1+o.sent%ringEntries):][:entrySize] }

// fetch has the cache line of the next entry come here from its reader, who has looked at it. That takes
// as long as what a call does until it puts. Most put to where they have put before.
func (n *neighbourhood) fetch() {
	if n.last != nil {
		cacheline.Fetch(&n.last.next()[0])
	}
}

// stamp shows the entry to the reader.
func (o *outbox) stamp(entry []byte, word uint32) {
	o.sent++
	lap := (o.sent-1)/ringEntries + 1
	atomic.StoreUint64(wordAt(entry, 0), lap<<32|uint64(word))
}

// fitsWord says whether a word can say which put of which rank it is of. The ring has a notice for another.
func (g *group) fitsWord(s *schedule.Step) bool {
	return s.Number < mostWordNumber && g.size <= mostWordSource
}

// leave puts to a rank whose cache is mapped, if there is room for the word, or none is needed.
func (g *group) leave(p progress, c *call, s *schedule.Step, src []byte, offset int) (left bool, err error) {
	to := &g.members[s.Peer]
	if to.near == nil {
		return false, nil
	}
	if !g.fitsWord(s) {
		copy(to.near.memory[offset:], src)
		return true, g.notifyArrived(p, c.number, s)
	}
	entry := to.near.entry()
	if entry == nil {
		return false, nil
	}
	short := 0
	if len(src) <= mostData {
		short = copy(entry[entryData:], src)
	} else {
		copy(to.near.memory[offset:], src)
	}
	binary.LittleEndian.PutUint64(entry[8:], uint64(offset)|uint64(short)<<32)
	g.near.last = to.near
	to.near.stamp(entry, wordOf(c.number, g.rank, s.Number, g.released))
	g.worded(s)
	return true, nil
}

// tellNear is tell for a rank that looks for it before it needs to know.
func (g *group) tellNear(p progress, rank int) {
	m := &g.members[rank]
	if m.near == nil || m.told == 0 || m.lost != nil {
		g.tell(p, rank)
		return
	}
	entry := m.near.entry()
	if entry == nil {
		g.tell(p, rank)
		return
	}
	binary.LittleEndian.PutUint64(entry[8:], releasedMark)
	binary.LittleEndian.PutUint64(entry[entryData:], g.released)
	m.near.stamp(entry, 0)
	m.told = g.released + 1
}

// mostNotices is how many go together.
const mostNotices = 2

// notifyNear has a rank find notices, in their order, before it needs them, if its ring has room for all.
// The first is of a window, unless that is nil.
func (g *group) notifyNear(rank int, notices []comm.Notice, window *block) bool {
	m := &g.members[rank]
	if m.near == nil || m.told == 0 || m.lost != nil || m.near.room() < len(notices) {
		return false
	}
	var name windowName
	if window != nil {
		name = g.nameFor(window, rank)
	}
	for _, n := range notices {
		entry := m.near.entry()
		binary.LittleEndian.PutUint64(entry[8:], noticeMark)
		for i, field := range [...]uint64{n.Tag, n.ID, n.Length, n.Remote.Address, n.Remote.Key, uint64(name)} {
			binary.LittleEndian.PutUint64(entry[entryData+8*i:], field)
		}
		m.near.stamp(entry, 0)
		name = 0
	}
	return true
}

// noticeIn is what notifyNear has written.
func noticeIn(data []byte) (n comm.Notice, window windowName) {
	for i, field := range [...]*uint64{&n.Tag, &n.ID, &n.Length, &n.Remote.Address, &n.Remote.Key, (*uint64)(&window)} {
		*field = binary.LittleEndian.Uint64(data[8*i:])
	}
	return n, window
}

// attend has the reactor look at the rings while something may come that is waited for.
func (g *group) attend(p progress) {
	wanted, often := false, 0
	switch {
	case len(g.near.inboxes) == 0:
	case g.failure == nil:
		wanted = g.next > g.released
		for i := range g.calls {
			if c := g.calls[i]; c != nil && !c.waitsForDevice() {
				often = len(g.near.inboxes)
			}
		}
	case g.closed || len(g.failed) > 0:
		// Until all that was written is there, of those who say how much that is.
		wanted = slices.ContainsFunc(g.near.inboxes, func(in inbox) bool {
			m := &g.members[in.rank]
			return m.lost == nil && (!m.stopped || m.heard < m.stoppedAt)
		})
	}
	g.near.wanted = wanted
	// What is not wanted any more ends with the next look, as the next call may come at once.
	if wanted && (!g.near.looking || often != g.near.often) {
		p.LookOut(g, often)
		g.near.looking, g.near.often = true, often
	}
}

// waitsForDevice says whether what a call waits for comes by the device.
func (c *call) waitsForDevice() bool {
	return c.large && (c.flying > 0 || c.direct && !crossing(c.shape.Collective))
}

// lookAway ends that for good, and waits for no words any more: the memory is about to be unmapped.
func (g *group) lookAway(p progress) {
	for i := range g.members {
		if m := &g.members[i]; m.leaving != nil {
			m.leaving.end()
			m.leaving = nil
		}
	}
	g.near.inboxes = nil
	g.attend(p)
	g.rest(p)
}

func (g *group) rest(p progress) {
	p.Rest(g)
	g.near.looking, g.near.often = false, 0
}

// Look implements efa.Lookout.
func (g *group) Look(p progress) (found bool) {
	if !g.near.wanted {
		g.rest(p)
		return false
	}
	for i := 0; i < len(g.near.inboxes); i++ {
		// No more than fit into the ring: others are to have their turn.
		for range ringEntries {
			if i >= len(g.near.inboxes) || !g.takeIn(p, &g.near.inboxes[i]) {
				break
			}
			if found = true; !g.near.wanted {
				// The cache line of the next entry is left to its writer.
				return true
			}
		}
	}
	return found
}

// takeAll takes in what the ring of a rank that is gone holds, wanted or not: a call that is still to come
// may need it.
func (g *group) takeAll(p progress, rank int) {
	for range ringEntries {
		i := slices.IndexFunc(g.near.inboxes, func(in inbox) bool { return in.rank == rank })
		if i < 0 || !g.takeIn(p, &g.near.inboxes[i]) {
			return
		}
	}
}

// nextEntry is the entry of a ring behind so many that were taken, with its word, or nil.
func nextEntry(ring []byte, taken uint64) (entry []byte, word uint32) {
	entry = ring[entrySize*(1+taken%ringEntries):][:entrySize]
	stamp := atomic.LoadUint64(wordAt(entry, 0))
	if uint32(stamp>>32) != uint32(taken/ringEntries+1) {
		return nil, 0
	}
	return entry, uint32(stamp)
}

// takeIn takes in the next entry of a ring, if there is one.
func (g *group) takeIn(p progress, in *inbox) bool {
	entry, word := nextEntry(in.ring, in.taken)
	if entry == nil {
		return false
	}
	// Once: its writer could still change it.
	place := binary.LittleEndian.Uint64(entry[8:])
	offset, length := place&releasedMark, place>>32
	if offset == noticeMark && !g.members[in.rank].known && g.failure == nil {
		// What comes by the device has to be known before: see noticeReleased. Who has failed only
		// wants to hear of what is behind it.
		return false
	}
	var released uint64
	var notice comm.Notice
	var window windowName
	switch {
	case offset == noticeMark:
		notice, window = noticeIn(entry[entryData:])
	case offset == releasedMark:
		released = binary.LittleEndian.Uint64(entry[entryData:])
	case length > 0 && length <= mostData && offset+length <= uint64(g.reserved()):
		copy(g.cache.memory[offset:], entry[entryData:][:length])
	}
	rank := in.rank
	if in.taken++; in.taken%takenEvery == 0 {
		atomic.StoreUint64(wordAt(in.ring, 0), in.taken)
	}
	// in is of no use from here on.
	switch {
	case offset == releasedMark:
		g.hearReleased(p, rank, released)
	case offset == noticeMark:
		var mapped *mapping
		if near := g.members[rank].near; near != nil {
			mapped = near.mapWindow(window)
		}
		if err := g.noticed(p, rank, notice, mapped); err != nil {
			g.fail(p, err)
		}
	case int(word>>8%mostWordSource) == rank:
		g.Written(p, word)
	}
	return true
}

// hearReleased takes in how many calls a rank has done.
func (g *group) hearReleased(p progress, rank int, released uint64) {
	from := &g.members[rank]
	if g.failure != nil || released <= from.released {
		return
	}
	from.released = released
	g.tellDrained()
	g.resume(p)
}

// moveOut ends the use of other ranks' caches, and what they know of this one's.
func (g *group) moveOut() (err error) {
	ownCaches.Lock()
	delete(ownCaches.groups, g.near.cookie)
	ownCaches.Unlock()
	for rank := range g.members {
		err = errors.Join(err, g.moveOutOf(rank))
	}
	return err
}

func (g *group) moveOutOf(rank int) error {
	m := &g.members[rank]
	if m.near == nil {
		return nil
	}
	err := errors.Join(m.near.detach(), hostmemory.Unmap(m.near.memory))
	for _, w := range m.near.windows {
		err = errors.Join(err, w.unmap())
	}
	if g.near.last == m.near {
		g.near.last = nil
	}
	m.near = nil
	return err
}
