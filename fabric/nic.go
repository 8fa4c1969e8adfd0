package fabric

import (
	"fmt"

	"github.com/weft-go/weft/cgo"
)

// NIC describes the network interface behind a domain (fid_nic). What the
// provider does not know is empty.
type NIC struct {
	// Name is the device's, such as "rdmap0s6".
	Name string
	// ID, Version and Vendor say which device it is, which revision of it and of
	// which maker: identifiers of the bus, in the notation of the provider.
	ID, Version, Vendor string
	// Driver is the name of the kernel's driver, Firmware the version of what runs
	// on the device.
	Driver, Firmware string
	// PCI is where on the bus it is; nil where it is on none.
	PCI *PCI
	// Link is how it is connected to the network.
	Link Link
}

// PCI is a place on the PCI bus (fi_pci_attr).
type PCI struct {
	Domain                uint16
	Bus, Device, Function uint8
}

// String has the notation of lspci: 0000:00:06.0.
func (p PCI) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", p.Domain, p.Bus, p.Device, p.Function)
}

// Link is a network interface's link (fi_link_attr).
type Link struct {
	// Address is the link's own, Network what kind of network it is, such as
	// "Ethernet".
	Address, Network string
	// MTU is the longest packet in bytes, Speed in bits per second.
	MTU, Speed uint64
	// State says whether packets can go.
	State LinkState
}

// LinkState says whether a link is up.
type LinkState uint32

// The states of a link.
const (
	LinkUnknown LinkState = LinkState(cgo.LinkUnknown) // FI_LINK_UNKNOWN
	LinkDown    LinkState = LinkState(cgo.LinkDown)    // FI_LINK_DOWN
	LinkUp      LinkState = LinkState(cgo.LinkUp)      // FI_LINK_UP
)

var linkStateNames = names[LinkState]{LinkDown: "down", LinkUp: "up"}

// String is "unknown", "down" or "up".
func (s LinkState) String() string { return linkStateNames.of(s) }

// NIC describes the network interface; ok is false where the provider says
// nothing about it, as for providers that are software alone.
func (i *Info) NIC() (nic NIC, ok bool) {
	if !i.a.HasNIC {
		return NIC{}, false
	}
	d, l := i.a.Device, i.a.Link
	nic = NIC{
		Name: d.Name, ID: d.ID, Version: d.Version, Vendor: d.Vendor, Driver: d.Driver, Firmware: d.Firmware,
		Link: Link{Address: l.Address, Network: l.Network, MTU: l.MTU, Speed: l.Speed, State: LinkState(l.State)},
	}
	if b := i.a.Bus; b.Type == cgo.BusPCI {
		nic.PCI = &PCI{Domain: b.Domain, Bus: b.Bus, Device: b.Device, Function: b.Function}
	}
	return nic, true
}
