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
	// Providers in order of preference; empty means efa, sockets.
	Providers []string
	// Require forbids any but the first.
	Require bool
	// Source is the host name or address that the endpoint is to be bound to,
	// for providers with IP addresses. Empty leaves it to libfabric, which
	// prefers interfaces that reach other hosts.
	Source string
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
	Info *Info
	// Passed are the candidates before it, in order.
	Passed []Rejection
}

// ChoiceError says that no candidate was usable, and why each was not. It is
// ErrNotFound.
type ChoiceError struct {
	Rejections []Rejection
}

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
// a [Port] can be opened. The error is a *ChoiceError. Any goroutine may call
// it; it looks at the machine anew each time.
func Choose(p Preference) (*Choice, error) {
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
		info, err := candidate(name, p.Source)
		if err != nil {
			passed = append(passed, Rejection{Provider: name, Reason: err})
			continue
		}
		attrs := []any{"provider", info.Provider(), "fabric", info.Fabric(), "domain", info.Domain()}
		for _, r := range passed {
			attrs = append(attrs, "passed_over_"+r.Provider, r.Reason.Error())
		}
		log.Info("weft: provider chosen", attrs...)
		return &Choice{Info: info, Passed: passed}, nil
	}
	return nil, &ChoiceError{Rejections: passed}
}

// candidate returns the best info of one provider, or why there is none.
func candidate(name, source string) (*Info, error) {
	if name == "" || strings.ContainsAny(name, ",^") {
		return nil, &Error{Op: "choice", Errno: errnoInvalid, Detail: fmt.Sprintf("%q is not the name of a provider", name)}
	}
	hints := messageHints()
	hints.Provider = name
	if core(name) == "efa" {
		// It means who tries again when a peer is not ready: PortConfig.Retries.
		hints.ResourceManagement = ResourcesDisabled
	}
	infos, err := Discover(hints)
	if err != nil {
		return nil, explain(name, err)
	}
	infos = fitting(name, infos)
	if len(infos) == 0 {
		return nil, explain(name, &Error{Op: "choice", Provider: name, Errno: errnoNoData})
	}
	if source != "" && infos[0].IP() {
		hints.Source = source
		// libfabric takes any address here, and fails to bind later.
		var at []*Info
		if bindable(source) {
			if at, err = Discover(hints); err == nil {
				at = fitting(name, at)
			}
		}
		if len(at) == 0 {
			return nil, &Error{
				Op: "choice", Provider: name, Errno: errnoNoData,
				Detail: "it cannot be bound to " + source + " on this machine",
			}
		}
		infos = at
	}
	return infos[0], nil
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
// one named efa, because efa-direct, listed first, has neither tags nor order.
func fitting(name string, infos []*Info) []*Info {
	const topTagBit = 1 << 63
	fit := slices.DeleteFunc(slices.Clone(infos), func(i *Info) bool {
		return core(i.Provider()) != core(name) || !i.OrderedSends() || i.TagBits()&topTagBit == 0
	})
	slices.SortStableFunc(fit, func(a, b *Info) int { return rank(a) - rank(b) })
	return fit
}

func rank(i *Info) int {
	if core(i.Provider()) == "efa" && i.Fabric() != "efa" {
		return 1
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
