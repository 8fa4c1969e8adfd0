package fabrictest

import (
	"errors"
	"fmt"
	"sync/atomic"

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
	limit      int  // of unexpected messages
	naps       bool // Wait does
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
