package suite

import (
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/weft-go/weft/efa"
)

// idler makes many connections, and looks what they take of memory, and of the
// processor's time while nothing is sent.
type idler struct {
	order   // count connections
	talk    talk
	watched time.Duration
	connect func() (net.Conn, error)
	conns   []net.Conn
}

// quiet is how long it takes until what was begun before is over, on both sides.
const quiet = 500 * time.Millisecond

// idleFigures is what one side of an idler reports.
type idleFigures struct {
	watched, used time.Duration // of the processor's
	// What all connections but the first take: when they are made, and when each has
	// carried a message in each direction.
	made, seasoned footprint
}

func (d *idler) do() ([]int64, error) {
	var f idleFigures
	d.conns = make([]net.Conn, d.count)
	// What comes with the first connection and the first messages, whoever sends them,
	// is of the peer and of libfabric's buffers, and not what a connection takes.
	var err error
	if d.conns[0], err = d.connect(); err != nil {
		return nil, err
	}
	for time := range d.count {
		if err := d.use(time, 1); err != nil {
			return nil, err
		}
	}
	before, err := currentFootprint()
	if err != nil {
		return nil, err
	}
	for i := range d.conns[1:] {
		if d.conns[1+i], err = d.connect(); err != nil {
			return nil, err
		}
	}
	d.inOrder()
	if f.made, err = before.since(); err != nil {
		return nil, err
	}
	if err := d.talk.waitForGo(); err != nil {
		return nil, err
	}
	if err := d.use(1, d.count); err != nil {
		return nil, err
	}
	if f.seasoned, err = before.since(); err != nil {
		return nil, err
	}
	time.Sleep(quiet)
	begin, used := time.Now(), processorTime()
	time.Sleep(d.watched)
	f.watched, f.used = time.Since(begin), processorTime()-used
	if d.first {
		// The other side may not be through yet.
		time.Sleep(2 * quiet)
	}
	// They are all still there.
	if err := d.use(2, d.count); err != nil {
		return nil, err
	}
	return f.encode(), nil
}

// inOrder sorts the connections by the dialer's port, which both sides know: a
// listener may hand them out in another order than that of dialing.
func (d *idler) inOrder() {
	port := func(c net.Conn) int {
		address := c.RemoteAddr()
		if d.first {
			address = c.LocalAddr()
		}
		if over, ok := address.(efa.Addr); ok {
			address = over.Control
		}
		return address.(*net.TCPAddr).Port
	}
	slices.SortFunc(d.conns, func(a, b net.Conn) int { return port(a) - port(b) })
}

// use has each of the first connections carry a message, with a number of its own,
// and the answer.
func (d *idler) use(time, count int) error {
	buf := make([]byte, d.size)
	for i, c := range d.conns[:count] {
		number := uint64(time*d.count + i)
		if d.first {
			if err := writeNumber(c, buf, number); err != nil {
				return err
			}
			number = ^number
		}
		if err := readNumber(c, buf, number); err != nil {
			return err
		}
		if !d.first {
			if err := writeNumber(c, buf, ^number); err != nil {
				return err
			}
		}
	}
	return nil
}

const idleFigureCount = 8

func (f idleFigures) encode() []int64 {
	return []int64{
		f.watched.Nanoseconds(), f.used.Nanoseconds(),
		f.made.heap, f.made.stacks, f.made.resident,
		f.seasoned.heap, f.seasoned.stacks, f.seasoned.resident,
	}
}

// decodeIdleFigures reads what encode made, of which there is the right number.
func decodeIdleFigures(n []int64) idleFigures {
	return idleFigures{
		watched: time.Duration(n[0]), used: time.Duration(n[1]),
		made:     footprint{n[2], n[3], n[4]},
		seasoned: footprint{n[5], n[6], n[7]},
	}
}

// processorTime is what this process has had of the processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	// It does not fail for the process itself.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
