// Package doctor finds out what keeps a machine from using EFA, and tells apart what
// libfabric reports alike. It looks at the system through a root, and at libfabric
// through what somebody else has asked it, so that it can be shown any machine.
package doctor

import (
	"io/fs"
)

// System is a machine as it is to be looked at.
type System struct {
	// Root is its file system: sys, proc, dev, etc and so on.
	Root fs.FS
	// Process is the process whose settings and limits count, by its number; empty
	// means this one.
	Process string
	// Open tries to open a device for reading and writing, by its path below Root. It
	// is more than its permissions tell: containers refuse what those allow.
	Open func(name string) error
	// Peek reads memory as the providers for one host read that of other processes; nil
	// where it was not tried.
	Peek func() error
	// Library is what libfabric says.
	Library Library
}

// Library is what libfabric says of itself and of EFA.
type Library struct {
	// Missing says why this program cannot call it; the rest is empty then.
	Missing string `json:"missing,omitempty"`
	// Died is how a process ended that was to ask it, and Said what it said last.
	Died string `json:"died,omitempty"`
	Said string `json:"said,omitempty"`

	Version   Version  `json:"version"`
	Headers   Version  `json:"headers"`
	Providers []string `json:"providers,omitempty"`
	// Variables are the names of the settings that it knows.
	Variables []string `json:"variables,omitempty"`
	// Needs are the libraries that it was linked with.
	Needs []string `json:"needs,omitempty"`
	// Devices are those of EFA that it offers, and Refusal why it offers none.
	Devices []string `json:"devices,omitempty"`
	Refusal string   `json:"refusal,omitempty"`
	// Failure says why an endpoint cannot be opened on the first device.
	Failure string `json:"failure,omitempty"`
	// Chosen is the provider that weft would take if it were not told.
	Chosen string `json:"chosen,omitempty"`
}

// Version is a version of libfabric.
type Version struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
}

func (v Version) before(major, minor int) bool {
	return v.Major < major || v.Major == major && v.Minor < minor
}

// usable says that libfabric has opened an endpoint on a device.
func (l *Library) usable() bool { return len(l.Devices) > 0 && l.Failure == "" }

// examination is one look at a machine.
type examination struct {
	System
	environ  map[string]string
	findings []Finding
	// functions are the EFA devices of the PCI bus, and devices what became of them.
	functions []function
	devices   []device
}

// Examine looks at everything, and reports what it has found, worst first.
func Examine(s System) *Report {
	if s.Process == "" {
		s.Process = "self"
	}
	x := &examination{System: s}
	x.readEnvironment()
	x.lookAtDevices()
	if s.Library.Missing != "" {
		x.find(NoCgo, "how this program was built", s.Library.Missing)
	} else {
		x.lookAtLibrary()
		x.lookAtVariables()
	}
	x.lookAtMemory()
	x.lookAtSharedMemory()
	x.lookAtTraffic()
	x.explain()
	return x.report()
}

// explain is for a machine where all looks well, and libfabric offers nothing.
func (x *examination) explain() {
	l := &x.Library
	switch {
	case l.Missing != "" || l.Died != "" || l.usable() || x.has(Problem):
	case len(l.Devices) > 0:
		x.find(Unopened, "an endpoint on "+l.Devices[0], l.Failure)
	default:
		x.find(Unexplained, "fi_getinfo for efa", l.Refusal)
	}
}

func (x *examination) has(s Severity) bool {
	for _, f := range x.findings {
		if f.Severity >= s {
			return true
		}
	}
	return false
}
