package fabrictest

import "github.com/weft-go/weft/fabric"

// message is one message that is on its way, or waits for its receive.
type message struct {
	from      *Device
	operation *operation // the send, until the message has arrived; nil for an inject
	tag       uint64
	data      []byte // the sender's own buffer while a send is on its way
	due       uint64 // arrives at this Turn of the receiver or later

	hasImmediate bool
	immediate    uint64

	copied []byte // memory of this message, kept for the next one
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
func (n *Network) send(l *link, to *Device, o *operation, op *fabric.Op) {
	m := n.newMessage()
	m.from, m.operation, m.tag, m.data, m.due = l.from, o, op.Tag, op.Buf, 0
	m.hasImmediate, m.immediate = op.Flags&fabric.Immediate != 0, op.Immediate
	if o == nil {
		m.own(op.Buf)
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
