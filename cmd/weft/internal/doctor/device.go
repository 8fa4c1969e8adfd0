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
	opens  bool
}

const (
	amazon = "0x1d0f"
	efaIDs = "0xefa0 0xefa1 0xefa2 0xefa3"
)

// lookAtDevices follows the devices from the bus to the files that a program opens, and
// stops where the last one is lost. One of several is no problem where it does not keep
// libfabric from the others: a container may have been given no more.
func (x *examination) lookAtDevices() {
	if !x.onTheBus() || !x.withDriver() || !x.offered() || !x.openable() {
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

// withDriver says whether the driver has a device.
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
	some := len(without) < len(x.functions)
	x.gradeIf(some, Warning)
	return some
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

// openable tries to open the devices as libfabric does, and says whether one of EFA can be
// opened.
func (x *examination) openable() bool {
	opened := false
	var missing []string
	for i := range x.devices {
		d := &x.devices[i]
		name := "dev/infiniband/" + d.uverbs
		looked := "/" + name + ", of " + d.name
		err := x.Open(name)
		d.opens = err == nil
		opened = opened || d.efa && d.opens
		switch {
		case err == nil && d.efa && x.rootAlone(name):
			// With sudo all looks well, and the program still may not.
			x.find(Permission, looked, "root may open it, and not everybody"+x.ownerOf(name))
			x.gradeIf(true, Note)
		case err == nil:
			x.fine(looked, "it can be opened")
		case !d.efa:
			x.find(OtherDevice, looked, "it is no EFA device, and "+reason(err))
			l := &x.Library
			x.gradeIf(l.Missing == "" && l.Died == "" && len(l.Devices) == 0, Problem)
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, d.uverbs+" of "+d.name)
		default:
			x.unopened(err, name, looked)
			x.gradeIf(x.Library.usable(), Warning)
		}
	}
	if len(missing) > 0 {
		found, severity := "there is no "+strings.Join(missing, ", "), Warning
		if x.inContainer() {
			found, severity = found+", and this is a container", Note
		}
		x.find(NoUverbs, "/dev/infiniband", found)
		// libibverbs leaves them out, and has the others.
		x.gradeIf(opened, severity)
	}
	return opened
}

// unopened says why a device of EFA that is there cannot be opened.
func (x *examination) unopened(err error, name, looked string) {
	switch {
	case errors.Is(err, syscall.EACCES):
		x.find(Permission, looked, reason(err)+x.ownerOf(name))
	case errors.Is(err, syscall.EPERM):
		x.find(DeviceCgroup, looked, reason(err)+", whatever its permissions are"+x.ownerOf(name))
	default:
		x.find(BrokenUverbs, looked, reason(err))
	}
}

// rootAlone says whether a file was opened by root, and is not for all users to open.
func (x *examination) rootAlone(name string) bool {
	const forAll = 0o006
	info, err := fs.Stat(x.Root, name)
	who, _, _ := strings.Cut(x.statusIn("proc/self/status", "Uid"), "\t")
	return err == nil && who == "0" && info.Mode().Perm()&forAll != forAll
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
		if state, ok := x.read(name); d.efa && d.opens && ok && !strings.Contains(state, "ACTIVE") {
			x.find(PortDown, "/"+name, state)
			// Programs take the first device if they are not told.
			l := &x.Library
			x.gradeIf(l.usable() && !strings.HasPrefix(l.Devices[0], d.name+"-"), Warning)
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
