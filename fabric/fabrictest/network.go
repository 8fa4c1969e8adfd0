// Package fabrictest has what tests of weft share: a [fabric.Device] in memory
// with faults, and the check that nothing was left behind.
//
// The devices of one [Network] behave like reliable-datagram endpoints of
// libfabric with send-after-send order and manual progress: messages arrive,
// and received bytes are written, during the receiver's Turn only. The bytes
// of a send are read when the message arrives, not when it is posted, so that
// a buffer that is used too early shows: as wrong data, or to the race
// detector.
package fabrictest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/weft-go/weft/fabric"
)

// Network joins the devices opened on it. Its methods may be called by any
// goroutine at any time.
type Network struct {
	faults Faults
	name   uint64

	mu      sync.Mutex // guards all below, and all of its devices
	random  *rand.Rand
	devices []*Device // neither closed nor killed
	opened  uint64
	spare   []*message
	stats   Stats
}

// NewNetwork returns a network without devices that has the faults f.
func NewNetwork(f Faults) *Network {
	for f.Seed == 0 {
		f.Seed = rand.Uint64()
	}
	return &Network{
		faults: f,
		name:   rand.Uint64(),
		random: rand.New(rand.NewPCG(f.Seed, f.Seed)),
	}
}

// DeviceConfig says what a device can do. The zero value works.
type DeviceConfig struct {
	// Provider is the name in the device's attributes and errors; "" is "fake".
	Provider string
	// MaxMessage is the longest message in bytes; 0 is 1 GiB.
	MaxMessage uint64
	// MaxInject is the longest inject in bytes; 0 is 64, and -1 allows empty
	// ones only.
	MaxInject int
	// MaxOperations bounds the operations in flight, and apart from them the
	// injects on their way; 0 is 1024.
	MaxOperations int
	// NeedsRegistration asks for registered buffers.
	NeedsRegistration bool
	// UnexpectedLimit bounds the messages that wait for their receive; 0 is no
	// bound. When it is reached, further sends to the device are refused, and
	// what is on its way stays there until it matches or there is room.
	UnexpectedLimit int
	// Spin is what the attributes say about spinning.
	Spin bool
}

// Open returns a new device of the network. A value out of range in config
// gives ErrInvalid.
func (n *Network) Open(config DeviceConfig) (*Device, error) {
	d := &Device{
		network:     n,
		limit:       config.UnexpectedLimit,
		known:       make(map[*Device]fabric.Address),
		live:        make(map[fabric.Descriptor]*registration),
		signalled:   make(chan struct{}),
		heldChanged: make(chan struct{}),
		attributes: fabric.Attributes{
			Provider:          config.Provider,
			Fabric:            "memory",
			Domain:            fmt.Sprintf("%016x", n.name),
			MaxMessage:        config.MaxMessage,
			MaxInject:         max(config.MaxInject, 0),
			MaxOperations:     config.MaxOperations,
			NeedsRegistration: config.NeedsRegistration,
			Spin:              config.Spin,
			Notifies:          true,
			SameHostOnly:      true,
		},
	}
	a := &d.attributes
	if a.Provider == "" {
		a.Provider = "fake"
	}
	if a.MaxMessage == 0 {
		a.MaxMessage = 1 << 30
	}
	if config.MaxInject == 0 {
		a.MaxInject = 64
	}
	if a.MaxOperations == 0 {
		a.MaxOperations = 1024
	}
	if a.MaxOperations < 0 || config.MaxInject < -1 || config.UnexpectedLimit < 0 {
		return nil, d.invalid("open", "limits must not be negative: %+v", config)
	}

	n.mu.Lock()
	defer n.mu.Unlock()
	d.address = fmt.Sprintf(addressFormat, n.name, n.opened)
	n.opened++
	n.stats.OpenDevices++
	n.devices = append(n.devices, d)
	return d, nil
}

// addressFormat holds the names of the network and of the device in it.
const addressFormat = "fake/%016x/%d"

// named returns the device of that address, or nil where there is none, or no
// longer. Other networks and gone devices have well-formed addresses as well.
func (n *Network) named(address string) (d *Device, wellFormed bool) {
	var network, device uint64
	if _, err := fmt.Sscanf(address, addressFormat, &network, &device); err != nil ||
		fmt.Sprintf(addressFormat, network, device) != address {
		return nil, false
	}
	for _, d := range n.devices {
		if d.address == address {
			return d, true
		}
	}
	return nil, true
}

// message is one message that is on its way, or waits for its receive.
type message struct {
	from      *Device
	operation *operation // the send, until the message has arrived; nil for an inject
	tag       uint64
	data      []byte // the sender's own buffer while a send is on its way
	due       uint64 // arrives at this Turn of the receiver or later
	copied    []byte // memory of this message, kept for the next one
}

// maxSpareMemory bounds the memory that an unused message keeps.
const maxSpareMemory = 64 << 10

func (n *Network) newMessage() *message {
	if last := len(n.spare) - 1; last >= 0 {
		m := n.spare[last]
		n.spare = n.spare[:last]
		return m
	}
	return new(message)
}

// drop loses a message that was on its way.
func (n *Network) drop(m *message) {
	n.stats.Dropped++
	if m.operation == nil {
		m.from.injects--
	}
	n.recycle(m)
}

// recycle ends m.
func (n *Network) recycle(m *message) {
	if cap(m.copied) > maxSpareMemory {
		m.copied = nil
	}
	*m = message{copied: m.copied}
	n.spare = append(n.spare, m)
}

// own makes the message independent of the sender's buffer.
func (m *message) own(data []byte) {
	m.copied = append(m.copied[:0], data...)
	m.data = m.copied
}

// link holds the messages on their way from one device to another.
type link struct {
	from   *Device
	queue  queue[*message]
	parted bool
	stuck  bool // the first has no receive, and there is no room for it
}

// link returns the link between two devices that are not gone.
func (n *Network) link(from, to *Device) *link {
	for _, l := range to.incoming {
		if l.from == from {
			return l
		}
	}
	l := &link{from: from}
	to.incoming = append(to.incoming, l)
	return l
}

// send puts a message on its way. Without an operation it is an inject.
func (n *Network) send(l *link, to *Device, o *operation, tag uint64, data []byte) {
	m := n.newMessage()
	m.from, m.operation, m.tag, m.data, m.due = l.from, o, tag, data, 0
	if o == nil {
		m.own(data)
		l.from.injects++
	}
	if n.faults.Delay > 0 {
		if turns := n.random.Uint64N(uint64(n.faults.Delay) + 1); turns > 0 {
			// The receiver's next Turn is the first that could take it.
			m.due = to.turns + 1 + turns
			n.stats.Delayed++
		}
	}
	l.queue.push(m)
	to.signal()
}

// moving says that a Turn of the receiver may bring the link's first message
// nearer.
func (l *link) moving() bool { return l.queue.len() > 0 && !l.parted && !l.stuck }

// arrivals lets in what is due, one message of each sender in turn.
func (d *Device) arrivals() {
	for again := true; again; {
		again = false
		for i := range d.incoming {
			// Nobody is always the first.
			l := d.incoming[(uint64(i)+d.turns)%uint64(len(d.incoming))]
			if d.admit(l) {
				again = true
			}
		}
	}
}

// admit lets in the first message of a link, to its receive or to wait for
// one, and thereby ends the send. It says whether that was possible.
func (d *Device) admit(l *link) bool {
	if l.parted || l.queue.len() == 0 {
		return false
	}
	m := l.queue.at(0)
	if m.due > d.turns {
		return false
	}
	receive := d.earliestReceive(m)
	l.stuck = receive == nil && d.full()
	if l.stuck {
		return false
	}
	l.queue.remove(0)
	if m.operation == nil {
		m.from.injects--
	}
	sent := m.operation
	m.operation = nil
	if receive != nil {
		d.deliver(receive, m)
	} else {
		if sent != nil {
			m.own(m.data)
		}
		d.network.stats.Unexpected++
		d.unexpected.push(m)
	}
	if sent != nil {
		l.from.complete(sent, fabric.Completion{})
	}
	return true
}

// full says that no further message can wait for its receive.
func (d *Device) full() bool { return d.limit > 0 && d.unexpected.len() >= d.limit }

// earliestReceive takes out the earliest receive that m matches, if any.
func (d *Device) earliestReceive(m *message) *operation {
	for i := range d.receives.len() {
		if o := d.receives.at(i); d.matches(o, m) {
			return d.receives.remove(i)
		}
	}
	return nil
}

// earliestUnexpected takes out the earliest waiting message for the receive o.
func (d *Device) earliestUnexpected(o *operation) *message {
	for i := range d.unexpected.len() {
		if m := d.unexpected.at(i); d.matches(o, m) {
			return d.unexpected.remove(i)
		}
	}
	return nil
}

func (d *Device) matches(o *operation, m *message) bool {
	return (o.tag^m.tag)&^o.ignore == 0 && (o.peer == fabric.AddressAny || o.peer == d.source(m))
}

// source returns what the device calls the sender of m: the first address
// under which it was inserted.
func (d *Device) source(m *message) fabric.Address {
	if address, ok := d.known[m.from]; ok {
		return address
	}
	return fabric.AddressAny
}

// deliver ends a receive with a message.
func (d *Device) deliver(o *operation, m *message) {
	c := fabric.Completion{Len: copy(o.buf, m.data), Source: d.source(m), Tag: m.tag}
	if excess := len(m.data) - len(o.buf); excess > 0 {
		d.network.stats.Truncated++
		c.Tag = 0 // which is told for success only
		c.Err = d.truncated(len(o.buf), excess)
	}
	d.network.recycle(m)
	d.complete(o, c)
}

// queue is a first-in, first-out list that also gives up elements of its
// middle. It does not allocate once it has grown.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int   { return len(q.items) - q.head }
func (q *queue[T]) at(i int) T { return q.items[q.head+i] }

func (q *queue[T]) push(item T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		count := copy(q.items, q.items[q.head:])
		clear(q.items[count:])
		q.items, q.head = q.items[:count], 0
	}
	q.items = append(q.items, item)
}

func (q *queue[T]) remove(i int) T {
	item := q.at(i)
	if i > 0 {
		q.items = slices.Delete(q.items, q.head+i, q.head+i+1)
		return item
	}
	var none T
	q.items[q.head] = none
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return item
}
