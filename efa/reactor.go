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
	resting         atomic.Bool
	called          atomic.Bool // the background is to drive, whoever else did
	bell            chan struct{}
	callerTurns     atomic.Uint64
	misses          atomic.Uint32 // waits in a row that were long
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
	lent        lentPool // has a lock of its own
	shelf       shelf
	arbiter     tagged.Arbiter[*operation]
	// halves are payloads that were refused after their lengths were posted.
	// They go first: if lengths of other connections passed them, both sides
	// could fill up with messages of which the payload cannot come.
	halves      tagged.Arbiter[*operation]
	shared      operationQueue // the shared receives that are to be posted
	payloads    operationQueue // likewise, of payloads
	payloadRoom int            // how many more of them may be in the device
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
	failures    int           // of the shared receives, in a row
	emptied     chan struct{} // of a Close that waits for the connections
	abandoned   uint64
	broken      error
	stats       Stats        // what is counted under the role
	retired     MessageStats // of the connections that have left the table

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

// Open opens a device and starts a reactor on it. The caller closes it.
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
	device := c.Device
	if device == nil {
		choice, err := fabric.Choose(fabric.Preference{
			Providers: c.Providers, Require: c.Require, Source: source, Logger: c.Logger,
		})
		if err != nil {
			return nil, err
		}
		if device, err = fabric.OpenPort(choice.Info, fabric.PortConfig{Retries: c.EFARetries, NoSharedMemory: c.EFAOnly}); err != nil {
			return nil, err
		}
	}
	r := &Reactor{
		config: c, device: device, attributes: device.Attributes(), address: device.LocalAddress(),
		bell: make(chan struct{}, 1), backgroundEnded: make(chan struct{}),
		posts: make([]fabric.Op, batchSize), batch: make([]*operation, batchSize),
		gathered:    make([]*operation, batchSize/2),
		completions: make([]fabric.Completion, batchSize),
		peers:       make(map[string]*peer),
		stalled:     make(map[string]error),
	}
	r.log = loggerFor(c.Logger, r.attributes.Provider)
	r.labels = newLabels(r.attributes.Provider)
	r.callbacks.labels = r.labels.callbacks
	r.config.EagerLimit = min(c.EagerLimit, int(min(r.attributes.MaxMessage, 1<<20))-tagged.LengthSize)
	if r.attributes.MaxMessage < tiniestPiece || r.attributes.MaxOperations < 4 {
		return nil, errors.Join(&DeviceError{&fabric.Error{
			Op: "reactor", Provider: r.attributes.Provider, Errno: 22,
			Detail: "a device must carry messages of 256 bytes and 4 operations at once",
		}}, device.Close())
	}
	r.lent.limit = c.MaxBufferBytes
	r.buffers = newBufferPool(device, max(tagged.LengthSize+r.config.EagerLimit, tagged.ControlSize))
	if err := r.postReceives(); err != nil {
		return nil, errors.Join(err, device.Close(), r.buffers.close())
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
	for i := range min(lengthBuffers, room-controls) + controls {
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
			r.broken = net.ErrClosed
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

	for !r.lead() {
		runtime.Gosched()
	}
	// The device holds buffers until it is closed, and then none.
	err := r.device.Close()
	for _, op := range r.operations.all {
		if op.purpose != 0 {
			r.letGo(op)
			r.ended(op, net.ErrClosed)
		}
	}
	err = errors.Join(err, r.buffers.close(), r.lent.close())
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
	return !r.arbiter.Empty() || !r.halves.Empty() || !r.shared.empty() || (r.payloadRoom > 0 && !r.payloads.empty())
}

// step takes in requests and takes one turn; it says how much happened.
func (r *Reactor) step(spins int) int {
	r.takeIn()
	if r.closed.Load() || r.broken != nil {
		return 0
	}
	n := r.shared.gather(r.batch[:batchSize/4])
	payloads := r.batch[n : n+min(batchSize/4, max(r.payloadRoom, 0))]
	n += r.live(payloads[:r.payloads.gather(payloads)])
	halves := r.batch[n : n+batchSize/4]
	n += r.live(halves[:r.halves.Gather(halves, quota)])
	// Each may bring its payload along.
	for _, op := range r.gathered[:r.arbiter.Gather(r.gathered[:(batchSize-n)/2], quota)] {
		r.batch[n] = op
		n++
		if op.payload != nil {
			r.batch[n] = op.payload
			n++
		}
	}
	for i, op := range r.batch[:n] {
		r.stage(op, &r.posts[i])
	}
	if n > 0 {
		spins = 0
	}
	reaped, err := r.device.Turn(r.posts[:n], r.completions, spins)
	r.turns++
	r.skipped = 0
	posted := r.settle(n)
	r.countTurn(n, posted, reaped)
	for i := range reaped {
		c := &r.completions[i]
		op := r.operations.all[c.Context]
		r.letGo(op)
		r.completed(op, c)
		c.Err = nil
	}
	if err == nil && (reaped == 0 || r.turns%eventsEvery == 0) && r.turns%16 == 0 {
		err = r.device.Errors()
		r.stats.Crossings++
		if err != nil && !fatal(err) {
			r.log.Warn("weft: device could not answer a peer", "error", err)
			err = nil
		}
	}
	if err != nil {
		r.breakDown(err)
	}
	return posted + reaped
}

// letGo notes that the device does not hold an operation any more.
func (r *Reactor) letGo(op *operation) {
	if op.posted && op.purpose == payloadReceive {
		r.payloadRoom++
	}
	op.posted = false
}

func (r *Reactor) stage(op *operation, post *fabric.Op) {
	if op.group > 0 && op.conn.gathering == op {
		op.conn.gathering = nil
	}
	post.Kind = op.kind
	post.Tag, post.Ignore = op.tag, op.ignore
	post.Buf, post.Descriptor, post.Fixed = op.buf, op.descriptor, op.fixed
	post.Context = uint64(op.index)
	if r.attributes.MasksMissWaiting {
		stageExact(op, post)
	}
	if op.kind == fabric.OpTaggedReceive {
		// Never from a named peer: several providers match a mixture wrongly.
		post.Peer = fabric.AddressAny
	} else {
		post.Peer = op.conn.peer.address
	}
}

// settle sorts out what the device took, and puts back what it did not, last
// one first so that the order stays.
func (r *Reactor) settle(n int) (posted int) {
	for i := range n {
		if p := r.batch[i].payload; p != nil && r.posts[i].Result != fabric.Refused {
			p.announced = true
			r.batch[i].payload = nil
		}
	}
	for i := n - 1; i >= 0; i-- {
		op, post := r.batch[i], &r.posts[i]
		switch post.Result {
		case fabric.Refused:
			r.countRefused(op)
			switch op.purpose {
			case lengthReceive, controlReceive, plainReceive:
				r.shared.putBack(op)
			case payloadReceive:
				r.payloads.putBack(op)
			default:
				switch {
				case op.announced:
					r.halves.PutBack(&op.conn.halves, op)
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
			if op.purpose == payloadReceive {
				r.payloadRoom--
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
			_ = r.device.Cancel(op.token)
			r.stats.Crossings++
		case post.Result == fabric.Posted && op.isPayload && op.write != nil:
			r.sendAhead(op)
		case post.Result == fabric.Posted && op.plain != nil && op.plain.closing:
			_ = r.device.Cancel(op.token)
			r.stats.Crossings++
		}
		r.batch[i] = nil
	}
	return posted
}

// breakDownLater is breakDown for where lists are being worked on.
func (r *Reactor) breakDownLater(err error) { r.later(func() { r.breakDown(err) }) }

// breakDown ends everything: the device is of no use any more.
func (r *Reactor) breakDown(err error) {
	if r.broken != nil {
		return
	}
	r.log.Error("weft: device failed", "error", err)
	r.broken = &DeviceError{err}
	r.endAll(r.broken)
	r.tellEmptied()
}

// peer is an address that connections share: not every provider knows an
// address again that is inserted a second time.
type peer struct {
	address fabric.Address
	name    string
	refs    int
	// lost: a connection to it ended with messages on their way.
	lost bool
}

func (r *Reactor) insert(address []byte) (*peer, error) {
	if p := r.peers[string(address)]; p != nil {
		p.refs++
		return p, nil
	}
	r.stats.Crossings++
	a, err := r.device.Insert(address)
	if err != nil {
		return nil, err
	}
	p := &peer{address: a, name: string(address), refs: 1}
	r.peers[p.name] = p
	return p, nil
}

func (r *Reactor) remove(p *peer) {
	if p.refs--; p.refs > 0 || r.broken != nil {
		return
	}
	if p.lost && r.attributes.KeepLostPeers {
		// What it had sent is taken in first, for which every shared receive
		// must be there.
		p.refs++
		time.AfterFunc(letGo, func() {
			r.submit(func() {
				p.lost = !r.shared.empty()
				r.remove(p)
			})
		})
		return
	}
	delete(r.peers, p.name)
	r.stats.Crossings++
	if err := r.device.Remove(p.address); err != nil && !fabric.IsClosed(err) {
		r.log.Warn("weft: removing a peer", "error", err)
	}
}
