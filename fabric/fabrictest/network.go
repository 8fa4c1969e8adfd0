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
	// Naps has Wait end after a millisecond at most, and the attributes say that it
	// notices nothing.
	Naps bool
	// MasksMissWaiting is as in the attributes.
	MasksMissWaiting bool
}

// Open returns a new device of the network. A value out of range in config
// gives ErrInvalid.
func (n *Network) Open(config DeviceConfig) (*Device, error) {
	d := &Device{
		network:     n,
		limit:       config.UnexpectedLimit,
		naps:        config.Naps,
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
			MasksMissWaiting:  config.MasksMissWaiting,
			Notifies:          !config.Naps,
			KeepsOrder:        true,
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
