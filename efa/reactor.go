package efa

import (
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// Reactor owns a device and moves the messages of any number of connections
// through it. Its methods may be called from any goroutine.
type Reactor struct {
	config     Config
	device     fabric.Device
	attributes fabric.Attributes
	address    []byte
	log        *slog.Logger

	// The progress role; see progress.go.
	role            atomic.Int32
	intake          atomic.Pointer[request]
	followers       followers
	parked          atomic.Int32
	owed            owed
	hurry           hurry
	resting         atomic.Bool
	called          atomic.Bool // the background is to drive, whoever else did
	bell            chan struct{}
	callerTurns     atomic.Uint64
	misses          atomic.Uint32 // waits in a row that were long
	crowd           crowd         // other processes that want the core (role)
	lookouts        lookouts
	beside          beside
	backgroundEnded chan struct{}

	closed    atomic.Bool
	closeOnce sync.Once
	closeErr  error
	owners    atomic.Int32 // a reactor that nobody asked for ends with the last

	// All below belongs to whoever holds the role.
	posts       []fabric.Op
	batch       []*operation
	gathered    []*operation
	completions []fabric.Completion
	operations  operationTable
	buffers     bufferPool
	lent        lentPool       // has a lock of its own
	arenas      arenaExposures // likewise
	shelf       shelf
	arbiter     tagged.Arbiter[*operation]
	// halves are payloads that were refused after their lengths were posted.
	// They go first: if lengths of other connections passed them, both sides
	// could fill up with messages of which the payload cannot come.
	halves tagged.Arbiter[*operation]
	shared operationQueue // the shared receives that are to be posted
	// spare is how many receives of lengths may wait for the next turn, whenever that
	// comes: enough are posted. hasty says that there are others.
	spare       int
	hasty       bool
	withdrawn   int            // matched receives in there that are not to be posted
	payloads    operationQueue // likewise, of payloads
	putOff      []*Conn        // which have payloads without a receive; see putoff.go
	putOffLook  time.Time      // when to look at them again, although the device is busy
	rails       []*rail        // beside the device; see rail.go
	lookAround  bool           // all rails are to have a turn
	waitings    []*railWaiting // the background's, of its wait
	waiting     atomic.Bool    // it waits for them
	carried     RailStats      // by the first device, where there are rails
	payloadRoom int            // how many more of them may be in the device
	starving    bool           // some wait for that: see withheld.go
	aheadRoom   int            // of these, for pieces of which an earlier one is to come
	sendRoom    int            // likewise, of sends, for pieces of which an earlier one is on its way
	lengthRoom  int            // likewise, of receives for lengths of attached connections
	table       connTable
	plain       plainTable // the attached connections; see plain.go
	peers       map[string]*peer
	stalled     map[string]error // by the names of peers
	freeWrites  writeList
	cancelled   []*operation
	turns       uint64
	skipped     int           // calls that were served since the last turn
	unread      int           // turns since the queue was read
	failures    int           // of the shared receives, in a row
	emptied     chan struct{} // of a Close that waits for the connections
	abandoned   uint64
	broken      error                              // why the device is of no use any more
	done        chan struct{}                      // closed once that is set
	onWrite     func(p Progress, immediate uint32) // hears of writes of peers
	stats       Stats                              // what is counted under the role
	retired     MessageStats                       // of the connections that have left the table

	watcher            watcher
	labels             labels
	warnings           throttle
	callbacks          callbackQueue
	accepting, dialing handshakeCounts
}

const (
	batchSize      = 128 // operations and completions of a turn
	quota          = 8   // messages of a connection before others have theirs
	lengthBuffers  = 128 // shared receives for length messages
	controlBuffers = 32  // and for control messages
	eventsEvery    = 256 // turns between looks at the device's own errors
)

// Open opens a device and starts a reactor on it. The caller closes it. Errors: *ConfigError,
// *fabric.ChoiceError, *fabric.Error, and fabric.ErrNotSupported in a program that was built
// without cgo, or not for Linux. With any, a Device that config has is closed.
func Open(config *Config) (*Reactor, error) {
	c, err := config.withDefaults()
	if err != nil {
		return nil, config.abandon(err)
	}
	r, err := open(c, "")
	if err != nil {
		return nil, config.abandon(err)
	}
	// The program's own: it does not end with its last connection.
	r.retain()
	return r, nil
}

// open starts a reactor bound to a source address, if one is given.
func open(c Config, source string) (*Reactor, error) {
	device, rails, err := c.openDevices(source)
	if err != nil {
		return nil, err
	}
	r := &Reactor{
		config: c, device: device, attributes: device.Attributes(), address: device.LocalAddress(),
		bell: make(chan struct{}, 1), backgroundEnded: make(chan struct{}), done: make(chan struct{}),
		posts: make([]fabric.Op, batchSize), batch: make([]*operation, batchSize),
		gathered:    make([]*operation, batchSize/2),
		completions: make([]fabric.Completion, batchSize),
		peers:       make(map[string]*peer),
		stalled:     make(map[string]error),
	}
	r.log = loggerFor(c.Logger, r.attributes.Provider)
	r.labels = newLabels(r.attributes.Provider)
	r.callbacks.labels = r.labels.callbacks
	r.config.EagerLimit = min(c.EagerLimit, int(min(r.piece(), 1<<20))-tagged.LengthSize)
	if err := r.fit(rails); err != nil {
		return nil, errors.Join(&DeviceError{Err: err}, device.Close(), closeAll(rails))
	}
	r.lent.limit = c.MaxBufferBytes
	r.buffers = newBufferPool(device, max(tagged.LengthSize+r.config.EagerLimit, tagged.ControlSize))
	if err := r.postReceives(); err != nil {
		return nil, errors.Join(err, device.Close(), closeAll(rails), r.buffers.close())
	}
	for _, l := range r.rails {
		l.waiting.start(l.device, device, &r.waiting, r.labels)
	}
	go r.background()
	r.logOpen()
	return r, nil
}

// postReceives queues the shared receives. They take at most half of what the
// device holds at once.
func (r *Reactor) postReceives() error {
	room := r.attributes.MaxOperations / 2
	// A quarter is for payloads, and a quarter left for sends: neither can take
	// all the room while it waits for the other side's other kind.
	r.payloadRoom = max(r.attributes.MaxOperations/4, 1)
	if r.attributes.KeepsOrder {
		r.aheadRoom = r.payloadRoom / 2
		r.sendRoom = r.aheadRoom
	}
	r.lengthRoom = r.attributes.MaxOperations / 16
	controls := min(controlBuffers, max(room/4, 1))
	lengths := min(lengthBuffers, room-controls)
	r.spare = lengths / 4
	for i := range lengths + controls {
		op := r.newOperation(nil, lengthReceive)
		op.tag, op.ignore = tagged.SharedLength, tagged.SharedIgnore
		size := tagged.LengthSize + r.config.EagerLimit
		if i < controls {
			op.purpose, op.tag, op.ignore = controlReceive, tagged.KControl, tagged.ControlIgnore
			size = tagged.ControlSize
		}
		op.kind = fabric.OpTaggedReceive
		if err := r.fill(op, size); err != nil {
			return err
		}
		r.shared.push(op)
	}
	r.hasty = true
	return nil
}

// copyLimit is the longest message that the reactor's own buffers hold.
func (r *Reactor) copyLimit() int {
	return min(r.buffers.sizes[1], int(min(r.attributes.MaxMessage, 1<<20))) - tagged.LengthSize
}

// Provider is the name of the device's provider, such as "tcp;ofi_rxm".
func (r *Reactor) Provider() string { return r.attributes.Provider }

// Close ends every connection at once, and the device: pending calls end with
// net.ErrClosed. Connections that were closed before have delivered everything.
func (r *Reactor) Close() error {
	r.closeOnce.Do(func() { r.closeErr = r.close() })
	return r.closeErr
}

func (r *Reactor) close() error {
	// What was cancelled gets a moment to end: tcp of libfabric 1.17 may die of
	// SIGSEGV when an endpoint is closed in the middle of a long message.
	select {
	case <-r.failAll():
	case <-time.After(letGoOfDevice):
	}
	r.do(func() {
		if r.broken == nil {
			r.endUse(net.ErrClosed)
		}
		// What was asked for from now on finds the reactor broken.
		r.closed.Store(true)
		r.endAll(net.ErrClosed)
	})
	select {
	case r.bell <- struct{}{}:
	default:
	}
	r.device.Wake()
	<-r.backgroundEnded
	r.watcher.close()
	for _, l := range r.rails {
		l.waiting.stop()
	}

	for !r.lead() {
		runtime.Gosched()
	}
	r.endBeside()
	// The device holds buffers until it is closed, and then none.
	err := r.device.Close()
	for _, l := range r.rails {
		if !l.closed {
			err = errors.Join(err, l.device.Close())
		}
	}
	for _, op := range r.operations.all {
		if op.purpose != 0 {
			r.letGo(op)
			r.ended(op, net.ErrClosed)
		}
	}
	err = errors.Join(err, r.arenas.close(), r.buffers.close(), r.lent.close())
	r.leave()
	r.logClosed(err)
	return err
}

// letGoOfDevice is how long Close waits for what was cancelled.
const letGoOfDevice = 200 * time.Millisecond

// failAll ends every connection; what it returns is closed when the device holds
// nothing of any.
func (r *Reactor) failAll() <-chan struct{} {
	emptied := make(chan struct{})
	r.do(func() {
		r.endAll(net.ErrClosed)
		r.emptied = emptied
		r.tellEmptied()
	})
	return emptied
}

// endAll ends every connection, and nobody waits for one to leave any more.
func (r *Reactor) endAll(why error) {
	// They leave the tables as they end.
	for _, c := range slices.Collect(r.connections()) {
		r.fail(c, why, nil)
	}
	r.putOff = nil
	r.plain.tellLeft()
}

// tellEmptied tells who closes the reactor that no connection is left.
func (r *Reactor) tellEmptied() {
	if r.emptied != nil && (r.broken != nil || r.table.count+r.plain.count == 0) {
		close(r.emptied)
		r.emptied = nil
	}
}

// do runs f in the progress role and waits for it.
func (r *Reactor) do(f func()) {
	done := make(chan struct{})
	r.submit(func() { f(); close(done) })
	// If somebody else leads, it looks at the intake before it is gone.
	<-done
}

// retain and drop count the owners of a reactor made by Listen or Dial.
func (r *Reactor) retain() { r.owners.Add(1) }

func (r *Reactor) drop() error {
	if r.owners.Add(-1) == 0 {
		return r.Close()
	}
	return nil
}

// pending says that something is waiting to be posted.
func (r *Reactor) pending() bool {
	return !r.arbiter.Empty() || len(r.beside.put) > 0 || !r.halves.Empty() || r.shared.length() > r.spare || r.hasty || (r.payloadRoom > 0 && !r.payloads.empty()) || r.railsOffer()
}

// step takes in requests and takes one turn, which looks at the queue up to spins more
// times, or not at all (noLook); it says how much happened.
func (r *Reactor) step(spins int) int {
	r.takeIn()
	if r.closed.Load() || r.broken != nil {
		return 0
	}
	seen := r.lookInTurn()
	// Nobody waits for the shared receives: they are posted behind the others.
	const most = batchSize * 3 / 4
	shared := r.batch[most:]
	shared = shared[:r.wanted(shared[:r.shared.gather(shared)])]
	payloads := r.batch[:min(batchSize/4, max(r.payloadRoom, 0))]
	n := r.live(payloads[:r.payloads.gather(payloads)])
	halves := r.batch[n : n+batchSize/4]
	n += r.live(halves[:r.halves.Gather(halves, quota)])
	// Each may bring its payload along.
	for _, op := range r.gathered[:r.arbiter.Gather(r.gathered[:(most-n)/2], quota)] {
		r.batch[n] = op
		n++
		if op.payload != nil && op.payload.lane == 0 {
			r.batch[n] = op.payload
			n++
		}
	}
	n += copy(r.batch[n:], shared)
	completions := r.completions
	if spins == noLook {
		completions = nil
	} else {
		r.unread = 0
		if n > 0 || r.railsBusy() {
			spins = 0
		}
	}
	r.turns++
	r.skipped = 0
	posted, reaped, err := r.turn(r.device, n, completions, spins)
	r.endBeside()
	r.lookouts.last = r.lookouts.last && reaped == 0
	r.hasty = r.hasty && !r.shared.empty()
	if err == nil && (reaped == 0 || r.turns%eventsEvery == 0) && r.turns%16 == 0 {
		err = r.eventsOf(r.device)
	}
	if err != nil {
		r.breakDown(err)
		return seen + posted + reaped
	}
	if len(r.putOff) > 0 {
		posted += r.receivePutOff(n+reaped == 0 && spins != noLook)
	}
	if len(r.rails) > 0 {
		return seen + posted + reaped + r.stepRails()
	}
	return seen + posted + reaped
}

// turn offers a device the first n operations of the batch, and takes in what has
// ended, as far as there is room for it in completions.
func (r *Reactor) turn(device fabric.Device, n int, completions []fabric.Completion, spins int) (posted, reaped int, err error) {
	for i, op := range r.batch[:n] {
		r.stage(op, &r.posts[i])
	}
	reaped, err = device.Turn(r.posts[:n], completions, spins)
	posted = r.settle(n)
	r.noteStarved()
	r.countTurn(n, posted, reaped)
	for i := range reaped {
		c := &completions[i]
		if c.Kind == fabric.OpRemoteWrite {
			r.peerWrote(c)
			continue
		}
		op := r.operations.all[c.Context]
		r.letGo(op)
		r.completed(op, c)
		c.Err = nil
	}
	return posted, reaped, err
}

func (r *Reactor) stage(op *operation, post *fabric.Op) {
	if op.group > 0 && op.conn.gathering == op {
		op.conn.gathering = nil
	}
	post.Kind = op.kind
	post.Tag, post.Ignore = op.tag, op.ignore
	post.Buf, post.Descriptor, post.Fixed = op.buf, op.descriptor, op.fixed
	post.Context, post.Remote = uint64(op.index), op.remote
	post.Flags, post.Immediate = op.flags, uint64(op.immediate)
	if r.attributes.MasksMissWaiting {
		stageExact(op, post)
	}
	if op.kind == fabric.OpTaggedReceive {
		// Never from a named peer: several providers match a mixture wrongly.
		post.Peer = fabric.AddressAny
	} else {
		post.Peer = op.peer().address
	}
}

// settle sorts out what the device took, and puts back what it did not, last
// one first so that the order stays.
func (r *Reactor) settle(n int) (posted int) {
	for i := range n {
		if p := r.batch[i].payload; p != nil && r.posts[i].Result != fabric.Refused {
			p.announced = true
			r.batch[i].payload = nil
			if p.lane > 0 {
				r.pushPart(p)
			}
		}
	}
	for i := n - 1; i >= 0; i-- {
		op, post := r.batch[i], &r.posts[i]
		switch post.Result {
		case fabric.Refused:
			r.countRefused(op)
			switch op.purpose {
			case lengthReceive, controlReceive, plainReceive, matchedReceive:
				r.shared.putBack(op)
			case payloadReceive:
				r.receivesOf(op).putBack(op)
			default:
				switch {
				case op.announced:
					r.putBackPart(op)
				case !op.isPayload:
					r.arbiter.PutBack(&op.conn.queue, op)
					if op.group > 0 && op.conn.queue.Len() == 1 {
						op.conn.gathering = op
					}
				}
				// A payload whose length was refused too goes with that.
			}
		case fabric.Posted:
			op.posted, op.token = op.kind != fabric.OpTaggedInject, post.Token
			if op.conn != nil {
				r.took(op)
			}
			posted++
		}
		post.Buf = nil
	}
	// In order, because these may end writes.
	for i := range n {
		op, post := r.batch[i], &r.posts[i]
		switch {
		case post.Result == fabric.Failed:
			err := post.Err
			post.Err = nil
			r.ended(op, err)
			posted++
		case post.Result == fabric.Posted && op.kind == fabric.OpTaggedInject:
			op.conn.stats.Injected++
			r.ended(op, nil)
		case post.Result == fabric.Posted && op.conn != nil && op.conn.failure != nil:
			// It was on its way when its connection failed.
			r.cancel(op)
		case post.Result == fabric.Posted && op.isPayload && op.write != nil:
			r.sendAhead(op)
		case post.Result == fabric.Posted && op.withdrawn:
			r.withdrawn--
			op.withdrawn = false
			r.cancel(op)
		case post.Result == fabric.Posted && op.plain != nil && op.plain.closing:
			_ = r.device.Cancel(op.token)
			r.stats.Crossings++
		}
		r.batch[i] = nil
	}
	return posted
}
