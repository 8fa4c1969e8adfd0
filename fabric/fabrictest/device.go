package fabrictest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/weft-go/weft/fabric"
)

// Device is a [fabric.Device] in memory, from Network.Open. As the contract
// says, one goroutine at a time uses it; only Wake is for anyone, and Wait, by
// one goroutine, may go on while others use the device. A second goroutine
// inside panics: it is a mistake in the code under test.
//
// Wait does not end because a post that was refused would now be accepted:
// what was refused has to be offered again at times.
type Device struct {
	network    *Network
	address    string
	attributes fabric.Attributes
	limit      int // of unexpected messages
	busy       atomic.Pointer[string]

	// The network's lock guards the rest.
	closed, killed bool
	gone           bool // closed or killed: out of the network
	turns          uint64
	tries          uint64 // posts tried, for RefuseEveryOther
	injects        int    // on their way
	inFlight       int    // operations in slots

	peers []peer                     // by Address
	known map[*Device]fabric.Address // who sends, by the first insertion
	live  map[fabric.Descriptor]*registration

	registered fabric.Descriptor // the last one given out

	slots []*operation
	free  []*operation
	lanes []lane // refused in this Turn

	incoming   []*link
	receives   queue[*operation] // without a message yet
	unexpected queue[*message]

	ready       queue[*operation] // ended, to be returned
	late        []*operation      // ended, held back by Faults.Reorder
	held        []*operation      // ended, held back by HoldCompletions
	holding     bool
	heldChanged chan struct{} // closed when held grows

	errors []error // that Errors has not taken yet

	woken     bool // by Wake, while nobody waited
	waiting   bool
	signalled chan struct{} // closed to end the Wait under way
}

var _ fabric.Device = (*Device)(nil)

// peer is an inserted address.
type peer struct {
	device   *Device // nil where the address is nobody's
	removed  bool
	inFlight int
}

// lane is what keeps order when one operation is refused.
type lane struct {
	peer    fabric.Address
	receive bool
}

// operation is a slot for one operation in flight.
type operation struct {
	index, generation uint32
	inUse, ended      bool

	kind         fabric.OpKind
	peer         fabric.Address
	tag, ignore  uint64
	buf          []byte
	context      uint64
	registration *registration

	completion fabric.Completion
	due        uint64 // the Turn in which a late completion is returned
}

func (o *operation) token() fabric.Token {
	return fabric.Token(o.generation)<<32 | fabric.Token(o.index)
}

// callNames has the call behind each kind of operation.
var callNames = [...]string{
	fabric.OpTaggedSend:    "fi_tsend",
	fabric.OpTaggedReceive: "fi_trecv",
	fabric.OpTaggedInject:  "fi_tinject",
}

// The names of the methods of which a device is in one at a time.
var (
	inTurn     = "Turn"
	inInsert   = "Insert"
	inRemove   = "Remove"
	inRegister = "Register"
	inCancel   = "Cancel"
	inArm      = "Arm"
	inErrors   = "Errors"
	inClose    = "Close"
)

// enter starts a method, and leave ends it.
func (d *Device) enter(method *string) {
	if !d.busy.CompareAndSwap(nil, method) {
		other := "a method"
		if name := d.busy.Load(); name != nil {
			other = *name
		}
		panic(fmt.Sprintf("fabrictest: %s of device %s was called while another goroutine was in %s; "+
			"only the holder of the progress role may use a device", *method, d.address, other))
	}
	d.network.mu.Lock()
}

func (d *Device) leave() {
	d.network.mu.Unlock()
	d.busy.Store(nil)
}

// Attributes is as in [fabric.Device].
func (d *Device) Attributes() fabric.Attributes { return d.attributes }

// LocalAddress is as in [fabric.Device].
func (d *Device) LocalAddress() []byte { return []byte(d.address) }

// Insert is as in [fabric.Device]. The addresses count from 0 and are never
// used again. An address that was inserted before gets another Address, but
// Completion.Source and the matching of receives know the first one only. The
// address of a device that is gone is accepted.
func (d *Device) Insert(address []byte) (fabric.Address, error) {
	d.enter(&inInsert)
	defer d.leave()
	if err := d.usable("fi_av_insert"); err != nil {
		return fabric.AddressAny, err
	}
	device, wellFormed := d.network.named(string(address))
	if !wellFormed {
		return fabric.AddressAny, d.invalid("fi_av_insert", "%q is not an address; one looks like %q", address, d.address)
	}
	inserted := fabric.Address(len(d.peers))
	d.peers = append(d.peers, peer{device: device})
	if _, ok := d.known[device]; !ok && device != nil {
		d.known[device] = inserted
	}
	return inserted, nil
}

// Remove is as in [fabric.Device]. With operations to the peer in flight it
// gives ErrBusy, for an Address that is not inserted ErrInvalid.
func (d *Device) Remove(address fabric.Address) error {
	d.enter(&inRemove)
	defer d.leave()
	if err := d.usable("fi_av_remove"); err != nil {
		return err
	}
	p := d.peer(address)
	if p == nil {
		return d.invalid("fi_av_remove", "there is no peer %d", address)
	}
	if p.inFlight > 0 {
		return d.fail("fi_av_remove", syscall.EBUSY, fmt.Sprintf("%d operations with the peer are in flight", p.inFlight))
	}
	p.removed = true
	if p.device == nil {
		return nil
	}
	delete(d.known, p.device)
	for i, other := range d.peers {
		if other.device == p.device && !other.removed {
			d.known[p.device] = fabric.Address(i)
			break
		}
	}
	return nil
}

func (d *Device) peer(address fabric.Address) *peer {
	if address >= fabric.Address(len(d.peers)) || d.peers[address].removed {
		return nil
	}
	return &d.peers[address]
}

// Turn is as in [fabric.Device].
func (d *Device) Turn(posts []fabric.Op, completions []fabric.Completion, spins int) (int, error) {
	d.enter(&inTurn)
	defer d.leave()
	if err := d.usable("turn"); err != nil {
		for i := range posts {
			posts[i].Result, posts[i].Token, posts[i].Err = fabric.Failed, 0, err
		}
		return 0, err
	}
	d.turns++
	d.releaseLate()
	d.lanes = d.lanes[:0]
	for i := range posts {
		d.post(&posts[i])
	}
	for {
		d.arrivals()
		if reaped := d.reap(completions); reaped > 0 || spins <= 0 {
			return reaped, nil
		}
		spins--
		d.network.mu.Unlock()
		runtime.Gosched()
		d.network.mu.Lock()
		if err := d.usable("turn"); err != nil {
			return 0, err
		}
	}
}

// post tries one operation and sets its result.
func (d *Device) post(op *fabric.Op) {
	op.Result, op.Token, op.Err = fabric.Refused, 0, nil
	l := lane{op.Peer, op.Kind == fabric.OpTaggedReceive}
	if slices.Contains(d.lanes, l) {
		d.network.stats.Refused++
		return
	}
	memory, err := d.check(op)
	if err == nil && !d.network.refuses(d) {
		if op.Kind == fabric.OpTaggedReceive {
			d.postReceive(op, memory)
		} else {
			err = d.postSend(op, memory)
		}
	}
	if err != nil {
		op.Result, op.Err = fabric.Failed, err
	}
	if op.Result == fabric.Refused {
		d.network.stats.Refused++
		d.lanes = append(d.lanes, l)
	}
}

// check finds what is wrong with an operation, and the registration that its
// buffer lies in.
func (d *Device) check(op *fabric.Op) (*registration, error) {
	if op.Kind == 0 || int(op.Kind) >= len(callNames) {
		return nil, d.invalid("post", "there is no kind of operation %d", op.Kind)
	}
	call, length, receive := callNames[op.Kind], len(op.Buf), op.Kind == fabric.OpTaggedReceive
	switch {
	case receive && op.Peer == fabric.AddressAny:
	case d.peer(op.Peer) == nil:
		return nil, d.invalid(call, "there is no peer %d", op.Peer)
	}
	if !receive && uint64(length) > d.attributes.MaxMessage {
		return nil, d.invalid(call, "a message of %d bytes is longer than %d", length, d.attributes.MaxMessage)
	}
	if op.Kind == fabric.OpTaggedInject {
		if length > d.attributes.MaxInject {
			return nil, d.invalid(call, "an inject of %d bytes is longer than %d", length, d.attributes.MaxInject)
		}
		return nil, nil
	}
	if op.Descriptor == 0 && (length == 0 || !d.attributes.NeedsRegistration) {
		return nil, nil
	}
	memory := d.live[op.Descriptor]
	switch {
	case op.Descriptor == 0:
		return nil, d.invalid(call, "the buffer needs a descriptor")
	case memory == nil:
		return nil, d.invalid(call, "descriptor %d is of no open registration", op.Descriptor)
	case !memory.covers(op.Buf):
		return nil, d.invalid(call, "the buffer is not within the registration of descriptor %d", op.Descriptor)
	}
	return memory, nil
}

func (d *Device) postReceive(op *fabric.Op, memory *registration) {
	o := d.take(op, memory)
	if o == nil {
		return
	}
	if m := d.earliestUnexpected(o); m != nil {
		d.deliver(o, m)
		return
	}
	if o.peer != fabric.AddressAny {
		if from := d.peers[o.peer].device; from == nil || from.gone {
			d.complete(o, fabric.Completion{Err: unreachable(d, o.kind, syscall.EHOSTUNREACH)})
			return
		}
	}
	d.receives.push(o)
}

func (d *Device) postSend(op *fabric.Op, memory *registration) error {
	n, to, inject := d.network, d.peers[op.Peer].device, op.Kind == fabric.OpTaggedInject
	dead := to == nil || to.gone
	if dead && n.faults.DeadPeers == DeadPeersRefuse {
		return nil
	}
	if dead && (inject || n.faults.DeadPeers == DeadPeersFail) {
		return unreachable(d, op.Kind, syscall.EHOSTUNREACH)
	}
	if !dead && to.full() {
		return nil
	}
	if inject {
		if d.injects < d.attributes.MaxOperations {
			op.Result = fabric.Posted
			n.send(n.link(d, to), to, nil, op.Tag, op.Buf)
		}
		return nil
	}
	o := d.take(op, memory)
	switch {
	case o == nil:
	case dead:
		d.complete(o, fabric.Completion{Err: unreachable(d, o.kind, syscall.EHOSTUNREACH)})
	case n.chance(n.faults.FailSend):
		n.stats.Dropped++
		d.complete(o, fabric.Completion{Err: d.fail(callNames[o.kind], syscall.EIO, "a fault of the test")})
	default:
		n.send(n.link(d, to), to, o, o.tag, o.buf)
	}
	return nil
}

// take finds a slot for op, which is posted thereby, or returns nil.
func (d *Device) take(op *fabric.Op, memory *registration) *operation {
	var o *operation
	if last := len(d.free) - 1; last >= 0 {
		o, d.free = d.free[last], d.free[:last]
	} else if len(d.slots) < d.attributes.MaxOperations {
		o = &operation{index: uint32(len(d.slots)), generation: 1}
		d.slots = append(d.slots, o)
	} else {
		return nil
	}
	o.inUse = true
	o.kind, o.peer, o.tag, o.ignore, o.buf, o.context = op.Kind, op.Peer, op.Tag, op.Ignore, op.Buf, op.Context
	if o.registration = memory; memory != nil {
		memory.inFlight++
	}
	if o.peer != fabric.AddressAny {
		d.peers[o.peer].inFlight++
	}
	d.inFlight++
	op.Result, op.Token = fabric.Posted, o.token()
	return o
}

// complete ends an operation. Its completion is c, together with what the
// operation itself tells.
func (d *Device) complete(o *operation, c fabric.Completion) {
	c.Context, c.Kind = o.context, o.kind
	if c.Err != nil || o.kind != fabric.OpTaggedReceive {
		c.Source = fabric.AddressAny
	}
	o.ended, o.completion = true, c
	n := d.network
	switch {
	case d.holding:
		d.held = append(d.held, o)
		close(d.heldChanged)
		d.heldChanged = make(chan struct{})
	case n.chance(n.faults.Reorder):
		n.stats.Reordered++
		o.due = d.turns + 1 + n.random.Uint64N(8)
		d.late = append(d.late, o)
	default:
		d.ready.push(o)
	}
	d.signal()
}

// releaseLate makes the late completions ready that are due, in random order.
func (d *Device) releaseLate() {
	if len(d.late) == 0 {
		return
	}
	d.network.random.Shuffle(len(d.late), func(i, j int) { d.late[i], d.late[j] = d.late[j], d.late[i] })
	d.late = slices.DeleteFunc(d.late, func(o *operation) bool {
		if o.due <= d.turns {
			d.ready.push(o)
		}
		return o.due <= d.turns
	})
}

// reap fills in completions. With that the operations' slots are free, and
// their buffers are the caller's again.
func (d *Device) reap(completions []fabric.Completion) int {
	count := min(len(completions), d.ready.len())
	for i := range count {
		o := d.ready.remove(0)
		completions[i] = o.completion
		if o.registration != nil {
			o.registration.inFlight--
		}
		if o.peer != fabric.AddressAny {
			d.peers[o.peer].inFlight--
		}
		d.inFlight--
		*o = operation{index: o.index, generation: o.generation + 1}
		d.free = append(d.free, o)
	}
	return count
}

// Cancel is as in [fabric.Device]. A receive without a message is cancelled
// always, a send on its way as Faults.CancelSends says. A token that no Turn
// gave out is ErrInvalid.
func (d *Device) Cancel(token fabric.Token) error {
	d.enter(&inCancel)
	defer d.leave()
	if err := d.usable("fi_cancel"); err != nil {
		return err
	}
	index, generation := uint64(token&(1<<32-1)), uint32(token>>32)
	if index >= uint64(len(d.slots)) || generation == 0 || generation > d.slots[index].generation ||
		generation == d.slots[index].generation && !d.slots[index].inUse {
		return d.invalid("fi_cancel", "token %#x was never given out", uint64(token))
	}
	o := d.slots[index]
	if o.generation != generation || o.ended {
		return nil
	}
	if o.kind == fabric.OpTaggedReceive {
		for i := range d.receives.len() {
			if d.receives.at(i) == o {
				d.receives.remove(i)
				break
			}
		}
	} else if !d.takeBack(o) {
		return nil
	}
	d.complete(o, fabric.Completion{Err: d.fail(callNames[o.kind], syscall.ECANCELED, "")})
	return nil
}

// takeBack drops the message of a send that is on its way, if the faults want
// that.
func (d *Device) takeBack(o *operation) bool {
	n := d.network
	if !n.chance(n.faults.CancelSends) {
		return false
	}
	to := d.peers[o.peer].device
	l := n.link(d, to)
	for i := range l.queue.len() {
		if l.queue.at(i).operation == o {
			n.drop(l.queue.remove(i))
			l.stuck = false
			to.signal()
			return true
		}
	}
	return false
}

// Arm is as in [fabric.Device]. It says false also while messages are delayed
// or completions are late, for these need Turns to come.
func (d *Device) Arm() bool {
	d.enter(&inArm)
	defer d.leave()
	return !d.gone && !d.readable()
}

// Wait is as in [fabric.Device]. It returns at once where Arm would say false.
func (d *Device) Wait(timeout time.Duration) {
	mu := &d.network.mu
	mu.Lock()
	if d.waiting {
		mu.Unlock()
		panic(fmt.Sprintf("fabrictest: two goroutines are in Wait of device %s; it is for one at a time", d.address))
	}
	if d.woken || d.gone || timeout <= 0 || d.readable() {
		d.woken = false
		mu.Unlock()
		runtime.Gosched()
		return
	}
	d.waiting = true
	signalled := d.signalled
	mu.Unlock()

	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-signalled:
	case <-timer.C:
	}
	mu.Lock()
	d.waiting = false
	mu.Unlock()
}

// readable says that another Turn may bring something.
func (d *Device) readable() bool {
	return d.ready.len() > 0 || len(d.late) > 0 || slices.ContainsFunc(d.incoming, (*link).moving)
}

// Wake is as in [fabric.Device].
func (d *Device) Wake() {
	d.network.mu.Lock()
	defer d.network.mu.Unlock()
	if !d.waiting {
		d.woken = true
	}
	d.signal()
}

// signal ends the Wait under way.
func (d *Device) signal() {
	if d.waiting {
		close(d.signalled)
		d.signalled = make(chan struct{})
	}
}

// Errors is as in [fabric.Device]. Here they come from Network.RaiseError only;
// a closed device has net.ErrClosed.
func (d *Device) Errors() error {
	d.enter(&inErrors)
	defer d.leave()
	if d.closed {
		return d.usable("fi_eq_read")
	}
	err := errors.Join(d.errors...)
	d.errors = nil
	return err
}

// Close is as in [fabric.Device]. What is on its way from the device is lost,
// injects too. To the others its end is that of Kill. A second Close does
// nothing.
func (d *Device) Close() error {
	d.enter(&inClose)
	defer d.leave()
	if d.closed {
		return nil
	}
	if !d.killed {
		d.network.depart(d)
	}
	d.closed = true
	d.network.stats.OpenDevices--
	d.signal()
	return nil
}

// registration is memory made known to a device.
type registration struct {
	device     *Device
	descriptor fabric.Descriptor
	buf        []byte
	inFlight   int
	closed     bool
}

// Register is as in [fabric.Device]. A device that does not need registration
// checks descriptors all the same where they are given.
func (d *Device) Register(buf []byte) (fabric.Registration, error) {
	d.enter(&inRegister)
	defer d.leave()
	if err := d.usable("fi_mr_reg"); err != nil {
		return nil, err
	}
	if len(buf) == 0 {
		return nil, d.invalid("fi_mr_reg", "there is nothing to register in an empty buffer")
	}
	d.registered++
	r := &registration{device: d, descriptor: d.registered, buf: buf}
	d.live[r.descriptor] = r
	d.network.stats.OpenRegistrations++
	return r, nil
}

func (r *registration) Descriptor() fabric.Descriptor { return r.descriptor }

// Close gives ErrBusy while operations that use the memory are in flight. A
// second Close does nothing, and the device may be closed already.
func (r *registration) Close() error {
	d := r.device
	d.network.mu.Lock()
	defer d.network.mu.Unlock()
	if r.closed {
		return nil
	}
	if r.inFlight > 0 && !d.gone {
		return d.fail("fi_close", syscall.EBUSY, fmt.Sprintf("%d operations use the registration", r.inFlight))
	}
	r.closed = true
	delete(d.live, r.descriptor)
	d.network.stats.OpenRegistrations--
	return nil
}

func (r *registration) covers(buf []byte) bool {
	start, registered := uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(unsafe.Pointer(unsafe.SliceData(r.buf)))
	return len(buf) == 0 || start >= registered && start+uintptr(len(buf)) <= registered+uintptr(len(r.buf))
}

// codeClosed is what package fabric uses for a closed handle: such an error is
// net.ErrClosed.
const codeClosed fabric.Errno = -1

// usable returns the error of a device that was closed or killed.
func (d *Device) usable(call string) error {
	switch {
	case d.closed:
		return &fabric.Error{Op: call, Errno: codeClosed, Provider: d.attributes.Provider}
	case d.killed:
		return d.fail(call, syscall.ENODEV, "the device was killed by the test")
	}
	return nil
}

func (d *Device) invalid(call, format string, values ...any) error {
	return d.fail(call, syscall.EINVAL, fmt.Sprintf(format, values...))
}

func (d *Device) fail(call string, code syscall.Errno, detail string) error {
	return &fabric.Error{Op: call, Errno: fabric.Errno(code), Provider: d.attributes.Provider, Detail: detail}
}

// truncated is FI_ETRUNC, as fi_cq_readerr tells it.
func (d *Device) truncated(room, excess int) error {
	return &fabric.Error{
		Op: callNames[fabric.OpTaggedReceive], Errno: codeTruncated, Provider: d.attributes.Provider,
		Detail: fmt.Sprintf("a message of %d bytes came to a buffer of %d", room+excess, room), Excess: excess,
	}
}

// codeTruncated is FI_ETRUNC.
const codeTruncated fabric.Errno = 265
