package fabric

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
)

// The order in which Choose looks if it is not told.
var defaultProviders = []string{"efa", "sockets"}

// DefaultProviders is the list that an empty Preference stands for.
func DefaultProviders() []string { return slices.Clone(defaultProviders) }

// Preference says which provider a program wants.
type Preference struct {
	// Providers in order of preference; empty means efa, sockets. tcp stands for
	// tcp;ofi_rxm where libfabric has that, and for tcp's own endpoints otherwise;
	// either has a name for itself alone: "tcp;ofi_rxm" and "tcp;".
	Providers []string
	// Require forbids any but the first.
	Require bool
	// Domains are the devices or interfaces to use, by the names that Info.Domain
	// has for them, the first for the Info of the Choice. A provider that has not
	// got all of them is passed over. Empty means all that there are, that of
	// the Source first, and the others in the order of libfabric.
	Domains []string
	// Source is the host name or address that the endpoint is to be bound to,
	// for providers with IP addresses. Empty means the address by which this
	// machine reaches others, that of the default route, and without one what
	// libfabric has first.
	Source string
	// Capabilities are what the endpoint must have beside messages.
	Capabilities Capabilities
	// Wanted are more of them, for a provider that can: they decide nothing.
	Wanted Capabilities
	// Logger is told what was chosen; nil means slog.Default().
	Logger *slog.Logger
}

// Rejection is a provider that was passed over, and why.
type Rejection struct {
	Provider string
	Reason   error
}

// Choice is the provider that Choose found.
type Choice struct {
	// Info is what OpenPort takes.
	Info *Info
	// Devices are all that there are of the provider, or those that the Preference
	// names, each once, and Info the first of them: a program with several ports
	// opens them on these. Only Info is bound to the Preference's Source.
	Devices []*Info
	// Passed are the candidates before it, in order.
	Passed []Rejection
}

// ChoiceError says that no candidate was usable, and why each was not. It is
// ErrNotFound.
type ChoiceError struct {
	Rejections []Rejection // of all candidates, in order
}

// Error names each candidate with its reason.
func (e *ChoiceError) Error() string {
	var parts []string
	for _, r := range e.Rejections {
		parts = append(parts, r.Provider+": "+r.Reason.Error())
	}
	return "no usable provider: " + strings.Join(parts, "; ")
}

// Is makes the error ErrNotFound.
func (e *ChoiceError) Is(target error) bool { return target == ErrNotFound }

// Choose goes through the providers in order and returns the first with which
// a [Port] can be opened. The error is a *ChoiceError, or ErrNotSupported in a program
// that was built without cgo, or not for Linux. Any goroutine may call it; it looks
// at the machine anew each time.
func Choose(p Preference) (*Choice, error) {
	if err := available("choice", ""); err != nil {
		return nil, err
	}
	names := p.Providers
	if len(names) == 0 {
		names = defaultProviders
	}
	if p.Require {
		names = names[:1]
	}
	log := p.Logger
	if log == nil {
		log = slog.Default()
	}
	var passed []Rejection
	for _, name := range names {
		devices, err := candidates(name, p)
		if err != nil {
			passed = append(passed, Rejection{Provider: name, Reason: err})
			continue
		}
		info := devices[0]
		attrs := []any{"provider", info.Provider(), "fabric", info.Fabric(), "domain", info.Domain()}
		for _, r := range passed {
			attrs = append(attrs, "passed_over_"+r.Provider, r.Reason.Error())
		}
		log.Info("weft: provider chosen", attrs...)
		return &Choice{Info: info, Devices: devices, Passed: passed}, nil
	}
	return nil, &ChoiceError{Rejections: passed}
}

// candidates returns the best info of each device of one provider, with what is wanted
// if that can be, or why there is none.
func candidates(name string, p Preference) ([]*Info, error) {
	if p.Wanted != 0 {
		with := p
		with.Capabilities, with.Wanted = p.Capabilities|p.Wanted, 0
		if devices, err := candidates(name, with); err == nil {
			return devices, nil
		}
	}
	if name == "" || strings.ContainsAny(name, ",^") {
		return nil, &Error{Op: "choice", Errno: errnoInvalid, Detail: fmt.Sprintf("%q is not the name of a provider", name)}
	}
	hints := messageHints()
	hints.Provider = name
	hints.Capabilities |= p.Capabilities
	if core(name) == "efa" {
		// It means who tries again when a peer is not ready: PortConfig.Retries.
		hints.ResourceManagement = ResourcesDisabled
	}
	infos, err := Discover(hints)
	if err != nil {
		return nil, explain(name, err)
	}
	outwardFirst(infos)
	if infos = fitting(name, infos); len(infos) == 0 {
		return nil, explain(name, &Error{Op: "choice", Provider: name, Errno: errnoNoData})
	}
	devices, err := named(name, onePerDomain(infos), p.Domains)
	if err != nil || p.Source == "" || !devices[0].IP() {
		return devices, err
	}
	hints.Source = p.Source
	var at []*Info
	// libfabric takes any address here, and fails to bind later.
	if bindable(p.Source) {
		if at, err = Discover(hints); err == nil {
			at = fitting(name, at)
		}
	}
	where := p.Source + " on this machine"
	if len(p.Domains) > 0 {
		at = slices.DeleteFunc(at, func(i *Info) bool { return i.Domain() != p.Domains[0] })
		where = p.Source + " on " + p.Domains[0]
	}
	if len(at) == 0 {
		return nil, &Error{Op: "choice", Provider: name, Errno: errnoNoData, Detail: "it cannot be bound to " + where}
	}
	return onePerDomain(append(at[:1:1], devices...)), nil
}

// elsewhere are addresses that only a default route leads to: they are for documentation.
var elsewhere = []string{"[2001:db8::1]:9", "192.0.2.1:9"}

// outwardFirst puts the infos with an address by which this machine reaches others before
// the rest, those of IPv4 first. libfabric begins with the newest interface, which may be
// the bridge of a container network.
func outwardFirst(infos []*Info) {
	for _, address := range elsewhere {
		// Connecting a UDP socket only asks the routing table.
		probe, err := net.Dial("udp", address)
		if err != nil {
			continue
		}
		host, _, _ := net.SplitHostPort(probe.LocalAddr().String())
		probe.Close()
		behind := func(i *Info) int {
			if i.SourceName() == host {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(infos, func(a, b *Info) int { return behind(a) - behind(b) })
	}
}

// onePerDomain keeps the first info of each device.
func onePerDomain(infos []*Info) []*Info {
	var devices []*Info
	for _, i := range infos {
		if !slices.ContainsFunc(devices, func(d *Info) bool { return d.Domain() == i.Domain() }) {
			devices = append(devices, i)
		}
	}
	return devices
}

// named returns those of the devices that are wanted, in that order; all if that does
// not matter.
func named(provider string, devices []*Info, wanted []string) ([]*Info, error) {
	if len(wanted) == 0 {
		return devices, nil
	}
	chosen := make([]*Info, len(wanted))
	for n, domain := range wanted {
		at := slices.IndexFunc(devices, func(i *Info) bool { return i.Domain() == domain })
		if at < 0 {
			var there []string
			for _, i := range devices {
				there = append(there, i.Domain())
			}
			return nil, &Error{
				Op: "choice", Provider: provider, Errno: errnoNoData,
				Detail: fmt.Sprintf("it has no device %q here, only %s", domain, strings.Join(there, ", ")),
			}
		}
		chosen[n] = devices[at]
	}
	return chosen, nil
}

// bindable says whether the host is an address of this machine.
func bindable(host string) bool {
	probe, err := net.ListenPacket("udp", net.JoinHostPort(host, "0"))
	if err != nil {
		return false
	}
	probe.Close()
	return true
}

// fitting keeps what a Port can work with: the provider itself, ordered, with
// all the bits of a tag. Of several fabrics of the efa provider it prefers the
// one named efa, because efa-direct, listed first, has neither tags nor order. Over
// tcp it prefers ofi_rxm to tcp's own endpoints, which libfabric has from 1.18 on
// and lists first. Those keep a message that came before its receive in a list while
// the rest of it is on its way; if the connection ends there, the message is freed
// and stays in the list, and the process dies of a later look at it, or in fi_close.
func fitting(name string, infos []*Info) []*Info {
	const topTagBit = 1 << 63
	fit := slices.DeleteFunc(slices.Clone(infos), func(i *Info) bool {
		return core(i.Provider()) != core(name) || !i.OrderedSends() || i.TagBits()&topTagBit == 0
	})
	slices.SortStableFunc(fit, func(a, b *Info) int { return rank(a) - rank(b) })
	return fit
}

func rank(i *Info) int {
	switch core(i.Provider()) {
	case "efa":
		if i.Fabric() != "efa" {
			return 1
		}
	case "tcp":
		if !layered(i) {
			return 1
		}
	}
	return 0
}

// explain tells apart what libfabric reports alike.
func explain(name string, err error) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	e := &Error{Op: "fi_getinfo", Provider: name, Errno: errnoNoData}
	known := providerNames()
	filter, filtered := os.LookupEnv("FI_PROVIDER")
	excluded := filtered && !admits(filter, name)
	switch there := slices.Contains(known, core(name)); {
	case there && excluded:
		e.Detail = "FI_PROVIDER=" + filter + " is set and keeps libfabric from using it: unset that, or name it there"
	case excluded:
		e.Detail = "libfabric has no such provider while FI_PROVIDER=" + filter + " is set; it has " + strings.Join(known, ", ")
	case there && core(name) == "shm":
		e.Detail = "libfabric has the provider, but /dev/shm cannot be written or has too little room: 16 MiB for each processor must be free"
	case there && strings.HasSuffix(name, ";"):
		e.Detail = "libfabric " + LibraryVersion().String() + " has it through utility layers only, or has no device or interface here that it could use"
	case there:
		e.Detail = "libfabric has the provider, but no device or interface here that it could use"
	case name == "efa":
		// The efa provider does not report for duty without a device.
		e.Detail = "no EFA device that libfabric could open"
	default:
		e.Detail = "libfabric " + LibraryVersion().String() + " has no such provider; it has " + strings.Join(known, ", ")
	}
	return e
}

// admits says whether a value of FI_PROVIDER, a list or the negation of one,
// lets libfabric use the provider. An empty one admits none.
func admits(filter, name string) bool {
	list, negated := strings.CutPrefix(filter, "^")
	listed := slices.ContainsFunc(strings.Split(list, ","), func(entry string) bool {
		return strings.EqualFold(core(entry), core(name))
	})
	return listed != negated
}

// providerNames are the providers in the library, without utility layers.
func providerNames() []string {
	infos, err := Discover(Hints{AttributesOnly: true})
	if err != nil {
		return nil
	}
	var names []string
	for _, i := range infos {
		// The layers (ofi_rxm and the like) are no choice of their own.
		if n := core(i.Provider()); n != "" && !strings.HasPrefix(n, "ofi_") && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}
