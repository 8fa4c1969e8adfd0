package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// function is an EFA device as the PCI bus has it.
type function struct {
	slot   string // such as 0000:00:06.0
	id     string // such as 0xefa1
	driver string
}

// device is an RDMA device as the kernel offers it to programs.
type device struct {
	name   string // such as rdmap0s6
	uverbs string // such as uverbs0
	efa    bool
}

const (
	amazon = "0x1d0f"
	efaIDs = "0xefa0 0xefa1 0xefa2 0xefa3"
)

// lookAtDevices follows a device from the bus to the file that a program opens, and
// stops where it is lost.
func (x *examination) lookAtDevices() {
	if !x.onTheBus() {
		return
	}
	if !x.withDriver() || !x.offered() {
		return
	}
	whole := true
	for _, d := range x.devices {
		whole = x.openable(d) && whole
	}
	if !whole {
		return
	}
	x.portsAreUp()
	x.hasPlugin()
}

// onTheBus looks for EFA devices on the PCI bus.
func (x *examination) onTheBus() bool {
	const bus = "sys/bus/pci/devices"
	slots := x.list(bus)
	for _, slot := range slots {
		vendor, _ := x.read(path.Join(bus, slot, "vendor"))
		id, _ := x.read(path.Join(bus, slot, "device"))
		if vendor == amazon && slices.Contains(strings.Fields(efaIDs), id) {
			uevent, _ := x.read(path.Join(bus, slot, "uevent"))
			x.functions = append(x.functions, function{slot: slot, id: id, driver: setting(uevent, "DRIVER")})
		}
	}
	switch {
	case len(x.functions) > 0:
		x.fine("/"+bus, fmt.Sprintf("%d EFA devices", len(x.functions)))
		return true
	case len(x.Library.Devices) > 0:
		x.find(Emulated, "/"+bus, "no EFA device, and libfabric has "+strings.Join(x.Library.Devices, ", "))
	default:
		x.find(NoDevice, "/"+bus, fmt.Sprintf("%d devices, none of them EFA%s", len(slots), x.machine()))
	}
	return false
}

// machine says what kind of machine this is, as far as it tells.
func (x *examination) machine() string {
	vendor, ok := x.read("sys/class/dmi/id/sys_vendor")
	kind, _ := x.read("sys/class/dmi/id/product_name")
	switch {
	case !ok:
		return ""
	case vendor == "Amazon EC2":
		return "; the machine is an instance of EC2 of type " + kind
	}
	return "; the machine is no instance of EC2 (" + strings.TrimSpace(vendor+" "+kind) + ")"
}

// setting returns a line NAME=VALUE of a uevent file.
func setting(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return value
		}
	}
	return ""
}

func (x *examination) withDriver() bool {
	var without []string
	for _, f := range x.functions {
		if f.driver != "efa" {
			taken := "no driver"
			if f.driver != "" {
				taken = "driver " + f.driver
			}
			without = append(without, f.slot+" has "+taken)
		}
	}
	const looked = "/sys/bus/pci/devices/*/uevent and /sys/module/efa"
	if len(without) == 0 {
		version, _ := x.read("sys/module/efa/version")
		x.fine(looked, strings.TrimSpace("the driver efa has the devices "+version))
		return true
	}
	module := "the module efa is loaded"
	if !x.exists("sys/module/efa") {
		module = "the module efa is not loaded"
	}
	x.find(NoDriver, looked, strings.Join(without, ", ")+"; "+module)
	return false
}

// offered looks for what programs open devices by.
func (x *examination) offered() bool {
	const class = "sys/class/infiniband_verbs"
	efa := 0
	for _, entry := range x.list(class) {
		name, ok := x.read(path.Join(class, entry, "ibdev"))
		if !ok {
			continue // abi_version, which is of none
		}
		vendor, _ := x.read(path.Join(class, entry, "device", "vendor"))
		x.devices = append(x.devices, device{name: name, uverbs: entry, efa: vendor == amazon})
		if vendor == amazon {
			efa++
		}
	}
	if efa > 0 {
		x.fine("/"+class, fmt.Sprintf("%d EFA devices", efa))
		return true
	}
	module := "the module ib_uverbs is loaded"
	if !x.exists("sys/module/ib_uverbs") {
		module = "the module ib_uverbs is not loaded"
	}
	x.find(NoVerbs, "/"+class, "no EFA device; "+module)
	return false
}

// openable tries to open a device as libfabric does.
func (x *examination) openable(d device) bool {
	name := "dev/infiniband/" + d.uverbs
	looked := "/" + name + ", of " + d.name
	err := x.Open(name)
	if err == nil {
		x.fine(looked, "it can be opened")
		return true
	}
	if !d.efa {
		x.find(OtherDevice, looked, "it is no EFA device, and "+reason(err))
		l := &x.Library
		x.blameIf(l.Missing == "" && l.Died == "" && len(l.Devices) == 0)
		return true
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		found := "it is not there"
		if x.inContainer() {
			found += ", and this is a container"
		}
		x.find(NoUverbs, looked, found)
	case errors.Is(err, syscall.EACCES):
		x.find(Permission, looked, reason(err)+x.ownerOf(name))
	case errors.Is(err, syscall.EPERM):
		x.find(DeviceCgroup, looked, reason(err)+", whatever its permissions are"+x.ownerOf(name))
	default:
		x.find(BrokenUverbs, looked, reason(err))
	}
	return false
}

// reason is an error without its path.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return "opening it says: " + err.Error()
}

// ownerOf says what the permissions of a file are, and who asks.
func (x *examination) ownerOf(name string) string {
	info, err := fs.Stat(x.Root, name)
	if err != nil {
		return ""
	}
	who, _, _ := strings.Cut(x.status("Uid"), "\t")
	return fmt.Sprintf(" (its permissions are %04o, the user is %s)", info.Mode().Perm(), who)
}

func (x *examination) portsAreUp() {
	for _, d := range x.devices {
		name := path.Join("sys/class/infiniband", d.name, "ports/1/state")
		if state, ok := x.read(name); d.efa && ok && !strings.Contains(state, "ACTIVE") {
			x.find(PortDown, "/"+name, state)
		}
	}
}

// hasPlugin looks for rdma-core's driver where libfabric has no device.
func (x *examination) hasPlugin() {
	if len(x.Library.Devices) > 0 || x.Library.Missing != "" {
		return
	}
	const folder = "etc/libibverbs.d"
	if x.exists(folder + "/efa.driver") {
		x.fine("/"+folder, "rdma-core has its driver for EFA")
		return
	}
	x.find(NoVerbsPlugin, "/"+folder, "there is no efa.driver")
}
