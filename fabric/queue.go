package fabric

import (
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// CompletionQueue is where operations end (fid_cq), and the owner of their
// contexts: it has as many slots for operations in flight as it has entries, so
// that operations with one completion each cannot overrun it. A MultiReceive has
// one for each message, and a peer's write with immediate data (OpRemoteWrite) has
// one without any slot: of those, the program must read as many as may come. It may
// be used by one goroutine at a time, together with the endpoints that are bound to
// it; Signal and Close by any.
type CompletionQueue struct {
	handle
	raw    cgo.CompletionQueue
	domain *Domain
	waitFD int
	// canBlock: it has a wait object. Without one shm crashes in fi_cq_sread,
	// and with the only one it makes it never comes back, whatever the timeout.
	canBlock bool
	// naps: it must not wait in libfabric any more. signaled ends a wait.
	naps, signaled atomic.Bool

	// mismatches: shm of libfabric 1.17 keeps the mask of a receive in the memory that it has
	// for the next message without one, and takes what differs from that in those bits only for
	// the message that a receive is for.
	mismatches bool

	// unmarked: efa of 1.17 gives the immediate of a message that came before its receive, and does
	// not say that it has one.
	unmarked bool

	slots  cgo.Slots
	reader *cgo.Turn // for reading without an endpoint
	// format is what was asked for, and entries the format in libfabric.
	format  CompletionFormat
	entries int
	table   []slot
	free    []uint32
	// resting are slots of operations that have failed, where the provider may say so
	// again: the next one that fails takes the place of the oldest, and frees it.
	resting []uint32
	oldest  int
	stray   uint64
	// stranded are slots that are neither free nor in use any more.
	stranded int
	// descriptors are those of operations with several, by slot; nil if there were none.
	descriptors []descriptors

	// noMessage are the errors of peeks that found nothing, by kind: programs
	// peek again and again, and each time it is the same.
	noMessage [OpReceive + 1]*Error
	// kept are completions that libfabric will not give, or has given already.
	kept []Completion
	// unposted are tokens of receives that libfabric is to get again (repost.go).
	unposted []uint64
	// refusals is room for what libfabric does not take again (directed_end.go).
	refusals []cgo.Refusal
	// unread are the contexts of receives for what an endpoint has left when it is
	// closed, if one was.
	unread cgo.Slots
	bound  atomic.Int32 // endpoints that were ever bound
}

// CompletionQueueConfig says what a completion queue is to be.
type CompletionQueueConfig struct {
	// Size is how many entries there are to be at least, 1 to 2^20.
	Size int
	// Format is what completions say; zero is CompletionTagged.
	Format CompletionFormat
}

// OpenCompletionQueue is OpenCompletionQueueConfig for tagged entries, size of them.
//
// Implements: int fi_cq_open(...)
func (d *Domain) OpenCompletionQueue(size int) (*CompletionQueue, error) {
	return d.OpenCompletionQueueConfig(CompletionQueueConfig{Size: size})
}

// OpenCompletionQueueConfig opens a queue. It has a wait descriptor where the
// provider can make one. ErrInvalid says what is wrong with the configuration, and
// ErrNotSupported that the provider does not have the format, as efa's domains of
// datagrams do not have CompletionTagged.
//
// Implements: int fi_cq_open(...)
func (d *Domain) OpenCompletionQueueConfig(c CompletionQueueConfig) (*CompletionQueue, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	const most = 1 << 20
	size := c.Size
	switch {
	case size < 1 || size > most:
		return nil, d.invalid("fi_cq_open", "a queue has 1 to "+strconv.Itoa(most)+" entries, not "+strconv.Itoa(size))
	case int(c.Format) >= len(completionFormats):
		return nil, d.invalid("fi_cq_open", "there is no such format of completions")
	}
	q := &CompletionQueue{domain: d, waitFD: -1, format: c.Format, entries: c.Format.within(d.provider)}
	raw, actual, code := d.raw.OpenCompletionQueue(size, cgo.WaitFD, q.entries)
	if code == 0 {
		q.canBlock = true
		if fd, code := raw.WaitDescriptor(); code == 0 {
			q.waitFD = fd
		}
	} else {
		raw, actual, code = d.raw.OpenCompletionQueue(size, cgo.WaitNone, q.entries)
	}
	if code != 0 {
		return nil, fail("fi_cq_open", d.provider, int(code))
	}
	if confusesStrangers(d.provider) {
		// Where the queue is made in another way, it is not known to be wrong.
		raw.NameStrangers()
	}
	// A provider may make more entries than asked for, but not fewer.
	actual = min(max(actual, size), most)
	rest := 0
	if core(d.provider) == "efa" {
		rest = mostResting
	}
	slots, ok := cgo.NewSlots(actual + rest)
	if !ok {
		raw.Close()
		return nil, fail("slots", d.provider, int(syscall.ENOMEM))
	}
	q.raw, q.slots = raw, slots
	q.mismatches = core(d.provider) == "shm" && LibraryVersion().Major < 2 && q.format == CompletionTagged
	q.unmarked = core(d.provider) == "efa" && olderThanTwo
	q.table = make([]slot, actual+rest)
	for i := range q.table {
		q.table[i].generation = firstGeneration
	}
	q.resting = make([]uint32, rest)
	for i := range q.resting {
		q.resting[i] = uint32(actual + i)
	}
	q.free = make([]uint32, actual)
	for i := range q.free {
		q.free[i] = uint32(actual - 1 - i)
	}
	if q.reader, ok = q.newTurn(cgo.Endpoint{}, 1); !ok {
		slots.Free()
		raw.Close()
		return nil, fail("turn", d.provider, int(syscall.ENOMEM))
	}
	q.wakes(q.wakeWaiters)
	q.open(kindQueue, d.provider, &d.handle)
	d.inUse.addQueue(q)
	return q, nil
}

// newTurn makes room for turns of an endpoint with up to ops operations, that read
// this queue.
func (q *CompletionQueue) newTurn(e cgo.Endpoint, ops int) (*cgo.Turn, bool) {
	t, ok := cgo.NewTurn(e, q.raw, ops, opsOf(q), q.domain.info.Capabilities()&SourceAddress != 0)
	if ok {
		t.Format(q.entries, q.slots)
		t.Words(wordsOf(q.domain.provider, e == cgo.Endpoint{}))
	}
	return t, ok
}

// wordsOf says whose words errors have. A layer asks the provider below it, by the first endpoint that the
// queue has: without any, which anybody may be who reads the queue alone, it ends the process. Providers of
// sockets have no words of their own.
func wordsOf(provider string, alone bool) cgo.Words {
	below, layer, layered := strings.Cut(provider, ";")
	switch {
	case !layered || layer != "ofi_rxm" && layer != "ofi_rxd":
		return cgo.ProviderWords
	case below == "tcp" || below == "net" || below == "udp":
		return cgo.ErrnoWords
	case alone:
		return cgo.NoWords
	}
	return cgo.ProviderWords
}

// WaitDescriptor returns the file descriptor that becomes readable when there
// may be completions, or -1, as after Close. It belongs to the queue. Before blocking on it,
// TryWait must have said that it is safe.
//
// Implements: int fi_control(...)
func (q *CompletionQueue) WaitDescriptor() int {
	if q.number == 0 || q.closed() {
		return -1
	}
	return q.waitFD
}

// TryWait says whether blocking on the wait descriptor is safe; if not, there
// is something to read. On ofi_rxm it is not safe any more once an endpoint of the
// queue has been closed: use ReadWait. ErrNotSupported says that the queue has no
// descriptor.
//
// Implements: int fi_trywait(...)
func (q *CompletionQueue) TryWait() (bool, error) {
	if err := q.enter(); err != nil {
		return false, err
	}
	defer q.leave()
	// shm would look into a wait object that is not there.
	if err := q.blocks("fi_trywait", &q.handle); err != nil {
		return false, err
	}
	if q.naps.Load() || len(q.kept) > 0 || len(q.unposted) > 0 {
		return false, nil
	}
	return mayBlock(q.provider, q.domain.fabric.raw.TryWait(q.raw))
}

// mayBlock says what fi_trywait has returned.
func mayBlock(provider string, code cgo.Code) (bool, error) {
	switch code {
	case 0:
		return true, nil
	case cgo.Again:
		return false, nil
	default:
		return false, fail("fi_trywait", provider, int(code))
	}
}

// Size is the number of entries, and so of operations that can be in flight.
func (q *CompletionQueue) Size() int { return len(q.table) - len(q.resting) }

// InFlight is the number of slots in use: of operations whose completion is still
// to come, of claimed messages, and of what endpoints left behind that were
// closed with operations in flight.
func (q *CompletionQueue) InFlight() int { return q.Size() - len(q.free) }

// Strays is the number of completions that belonged to no operation in flight,
// and were dropped.
func (q *CompletionQueue) Strays() uint64 { return q.stray }

// Close closes the queue. ErrBusy says which endpoints still use it.
//
// Implements: int fi_close(...)
func (q *CompletionQueue) Close() error {
	err := q.close(func() error {
		if err := fail("fi_close of completion queue", q.provider, int(q.raw.Close())); err != nil {
			return err
		}
		q.slots.Free()
		if q.unread != (cgo.Slots{}) {
			q.unread.Free()
		}
		q.reader.Free()
		q.domain.inUse.removeQueue(q)
		return nil
	})
	if err != nil {
		return err
	}
	return onThisHost.endAll(q.domain)
}

// errnoUnknownSource is how a message ends that was received, and whose sender the
// address vector does not have (EADDRNOTAVAIL, with SourceErrors).
const errnoUnknownSource = int32(99)

// finish turns what C read into a Completion, and says whether it belongs to an
// operation in flight, or to what a peer did.
func (q *CompletionQueue) finish(t *cgo.Turn, c *cgo.Completion, out *Completion) bool {
	*out = Completion{Source: AddressAny}
	index, s := q.lookup(c.Token)
	if s == nil || s.claimed {
		if unreadKind(c.Token) >= 0 {
			return false
		}
		// shm 2.1 marks it by the immediate alone.
		if c.Token == cgo.NoToken && c.Err == 0 && q.format != CompletionContext && c.Flags&(cgo.FlagRemoteWrite|cgo.FlagImmediate) != 0 {
			out.Kind, out.Len = OpRemoteWrite, int(c.Len)
			out.HasImmediate, out.Immediate = c.Flags&cgo.FlagImmediate != 0, c.Data
			q.format.narrow(out)
			return true
		}
		q.stray++
		return false
	}
	if s.drained && q.found(index, c) {
		return false
	}
	out.Context, out.Kind = s.context, s.kind
	last := true
	received := c.Err == 0 || c.Err == errnoUnknownSource
	if kinds[s.kind].receive && received {
		out.Len, out.Source = int(c.Len), Address(c.Source)
		if c.Source == cgo.Stranger {
			out.Source = AddressAny
		}
		// efa leaves anything in it for a message without a tag.
		if s.kind == OpTaggedReceive {
			out.Tag = c.Tag
			if q.mismatches && (c.Tag^s.tag)&^s.ignore != 0 {
				out.Err = &Error{
					Op: s.kind.String(), Provider: q.provider, Errno: Errno(syscall.EBADMSG),
					Detail: "a message with tag 0x" + strconv.FormatUint(c.Tag, 16) + " for a receive of 0x" +
						strconv.FormatUint(s.tag, 16) + " that ignores 0x" + strconv.FormatUint(s.ignore, 16),
				}
			}
		}
		if c.Flags&cgo.FlagImmediate != 0 || q.unmarked && c.Data != 0 {
			out.HasImmediate, out.Immediate = true, c.Data
		}
		if s.flags&MultiReceive != 0 {
			if s.endpoint.singly {
				out.Offset = s.taken
				last = !q.goesOn(index, c.Len)
			} else {
				if c.Buf >= s.base && c.Len > 0 {
					out.Offset = int(c.Buf - s.base)
				}
				last = c.Flags&cgo.FlagMultiReceive != 0
			}
			out.Released = last
		}
	}
	if last && out.Len > s.room {
		s.spilled(q, out, out.Len)
	}
	if c.Err == 0 {
		q.format.narrow(out)
	} else {
		// That it did not fit says more than who has sent it.
		if out.Err == nil {
			out.Err = q.failure(t, c, s)
		}
		out.Released = out.Released || !received && s.flags&MultiReceive != 0
	}
	if s.drained && s.flags&Peek == 0 {
		s.discarded(out, Errno(c.Err))
	}
	switch {
	case !last:
	case c.Err == 0 && s.flags&(Peek|Claim) == Peek|Claim && s.flags&Discard == 0:
		// The provider keeps the message in the context of the peek, and nothing
		// of its buffers: the receive brings its own.
		s.unpin()
		s.claimed = true
		out.Token = Token(uint64(s.generation)<<32 | uint64(index))
	case c.Err != 0:
		q.giveLater(index)
	default:
		q.give(index)
	}
	return true
}

// failure is the error of an operation that has failed.
func (q *CompletionQueue) failure(t *cgo.Turn, c *cgo.Completion, s *slot) error {
	nothing := s.flags&Peek != 0 && kinds[s.kind].receive && Errno(c.Err) == Errno(syscall.ENOMSG)
	if nothing && q.noMessage[s.kind] != nil {
		return q.noMessage[s.kind]
	}
	e := &Error{
		Op: s.kind.String(), Provider: q.provider, Errno: failedAs(q.provider, Errno(c.Err), c.ProviderErrno),
		Detail: t.ErrorText(c), Excess: int(c.Excess), Data: t.ErrorData(c),
		gone: saysGone(q.provider, Errno(c.Err)),
	}
	if nothing {
		q.noMessage[s.kind] = e
	}
	return e
}

// Read takes up to len(completions) completions off the queue, of whichever
// endpoint, but no more than it has entries (16 at least), or than 256; while there are
// none it tries spins times more, where fewer than 0 is 0, and at most 1,048,576 times. It
// is for queues that several endpoints share; Turn reads the queues of its endpoint itself.
// It does not allocate, but for errors, which are about the queue as a whole: that of an
// operation is in its Completion.
//
// Implements: ssize_t fi_cq_read(...), fi_cq_readfrom(...), fi_cq_readerr(...)
func (q *CompletionQueue) Read(completions []Completion, spins int) (int, error) {
	return q.read(completions, q.patience(spins), 0)
}

// ReadWait is Read that blocks for up to waitMS milliseconds, where fewer than 0 is
// 0; see [Endpoint.TurnWait]. ErrNotSupported says that nobody can wait here.
//
// Implements: ssize_t fi_cq_sread(...), fi_cq_sreadfrom(...)
func (q *CompletionQueue) ReadWait(completions []Completion, waitMS int) (int, error) {
	if err := q.blocks("fi_cq_sread", &q.handle); err != nil {
		return 0, err
	}
	return q.read(completions, 0, q.patience(waitMS))
}

func (q *CompletionQueue) read(completions []Completion, spins, waitMS int) (int, error) {
	if err := q.enter(); err != nil {
		return 0, err
	}
	defer q.leave()
	return q.reap(q.reader, nil, nil, completions, spins, waitMS)
}

// reap takes a turn, with the posts of an endpoint if it is not nil, and fills in completions.
func (q *CompletionQueue) reap(t *cgo.Turn, e *Endpoint, posts []Op, completions []Completion, spins, waitMS int) (int, error) {
	filled := 0
	if len(q.kept) > 0 {
		filled = q.takeKept(completions)
		spins, waitMS = 0, 0
	}
	if len(q.unposted) > 0 {
		spins, waitMS = 0, 0
	}
	room := min(len(completions)-filled, len(t.Completions))
	var reaped int
	var code cgo.Code
	if waitMS > 0 {
		reaped, code = q.wait(t, len(posts), room, min(bounded(spins), mostSpins), bounded(waitMS))
	} else {
		reaped, code = t.Take(len(posts), room, min(bounded(spins), mostSpins), 0)
	}
	// What has ended by being posted is before what the queue says of it.
	before := len(q.kept)
	for i := range posts {
		e.settle(&posts[i], &t.Ops[i])
	}
	if len(q.kept) > before {
		for i := range reaped {
			var c Completion
			if q.finish(t, &t.Completions[i], &c) {
				q.kept = append(q.kept, c)
			}
		}
		reaped = 0
		filled += q.takeKept(completions[filled:])
	}
	for i := range reaped {
		if q.finish(t, &t.Completions[i], &completions[filled]) {
			filled++
		}
	}
	if len(q.unposted) > 0 {
		q.postAgain()
	}
	return filled, fail("fi_cq_read", q.provider, int(code))
}

// takeKept gives out what is kept.
func (q *CompletionQueue) takeKept(completions []Completion) int {
	n := copy(completions, q.kept)
	q.kept = q.kept[n:]
	return n
}

// bounded is what C takes for a count: to libfabric, a wait below 0 is one without
// an end.
func bounded(n int) int { return min(max(n, 0), math.MaxInt32) }

// mostSpins is the most looks of one call: nothing ends it meanwhile, and Close waits for it.
const mostSpins = 1 << 20

// Signal ends a ReadWait or TurnWait under way. Any goroutine may call it.
// ErrNotSupported says that nobody can wait here.
//
// Implements: int fi_cq_signal(...)
func (q *CompletionQueue) Signal() error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	if err := q.blocks("fi_cq_signal", &q.handle); err != nil {
		return err
	}
	return fail("fi_cq_signal", q.provider, int(q.signal()))
}

// wakeWaiters is Signal for a Close of the queue, or of an endpoint that it has.
func (q *CompletionQueue) wakeWaiters() {
	if q.canBlock {
		q.signal()
	}
}

// blocks says why nobody can block in the queue, if so, for the call op of the handle, which
// may be closed.
func (q *CompletionQueue) blocks(op string, h *handle) error {
	if q.canBlock {
		return nil
	}
	if err := h.enter(); err != nil {
		return err
	}
	defer h.leave()
	return &Error{Op: op, Provider: q.provider, Errno: Errno(syscall.ENOSYS), Detail: "the queue has no wait object"}
}
