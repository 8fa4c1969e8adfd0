package fabric

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// Info is one way to communicate that libfabric offers (fi_info): a provider, a
// network, an interface and a type of endpoint, with all that they can do. It is
// immutable and may be used from any goroutine. There is nothing to close. What is
// open of one provider refuses the infos of others, with [ErrInvalid].
type Info struct {
	raw cgo.Info
	a   cgo.Attributes
	// offered: libfabric has put a connection into it, of which one endpoint can be
	// made, once; that is for the ConnectionRequest to see to.
	offered bool
}

// newInfo owns what libfabric allocated.
func newInfo(raw cgo.Info) *Info {
	i := &Info{raw: raw, a: raw.Attributes()}
	// An Info is plain memory that nothing has to close in order.
	runtime.AddCleanup(i, func(r cgo.Info) { r.Free() }, raw)
	return i
}

// fillIn has the info of a request say where it comes from, which sockets leaves out.
func (i *Info) fillIn(of *Info) {
	if i.a.Provider == "" {
		i.a.Provider, i.a.APIVersion, i.a.Fabric = of.a.Provider, of.a.APIVersion, of.a.Fabric
	}
}

// foreign says why an info is none for what is open of a provider, or "". Providers do not
// look: sockets takes those of any other, also for a domain, which weft would then deal with
// as with the other's, and shm dies of SIGSEGV.
func (i *Info) foreign(provider string) string {
	if i.Provider() != provider {
		return "the info is of another provider, " + i.Provider()
	}
	return ""
}

// wrong says why no endpoint can be opened with an info, or "".
func (i *Info) wrong(provider string) string {
	if detail := i.foreign(provider); detail != "" {
		return detail
	}
	if i.offered {
		return "the info is that of a connection request, which opens its own endpoint; others take an info of Discover"
	}
	return ""
}

// efaInfo is for the efa provider, which changes memory that its threads share when it is
// asked for collectives: two at a time bring down the process (libfabric 1.17).
var efaInfo sync.RWMutex

func getInfo(h Hints) ([]cgo.Info, cgo.Code) {
	switch {
	case !h.mayBeEFA():
	case h.Capabilities&Collectives != 0:
		efaInfo.Lock()
		defer efaInfo.Unlock()
	default:
		efaInfo.RLock()
		defer efaInfo.RUnlock()
	}
	if !h.mayBeEFA() {
		setup.Lock()
	} else {
		defer lockSetupOfAll()()
	}
	defer setup.Unlock()
	return cgo.GetInfo(h.raw())
}

// mayBeEFA says whether the provider may be efa: no name, several, all but some, or a
// utility layer alone.
func (h Hints) mayBeEFA() bool {
	return h.Provider == "" || strings.ContainsAny(h.Provider, ",^") || strings.HasPrefix(h.Provider, "ofi_") ||
		strings.Contains(h.Provider, "efa")
}

// Discover lists what libfabric offers for the hints, in its order of
// preference. ErrNotFound says that there is nothing; libfabric says the same
// for a missing device, a container without it and a misspelt provider.
// ErrInvalid and ErrNotSupported say which hint cannot be right; a program that was
// built without cgo, or not for Linux, always gets ErrNotSupported. It looks at
// the machine, which may take milliseconds. Any goroutine may call it.
//
// Implements: int fi_getinfo(...)
func Discover(h Hints) ([]*Info, error) {
	if detail, unknown := h.wrong(); detail != "" {
		errno := errnoInvalid
		if unknown {
			errno = Errno(syscall.ENOSYS)
		}
		return nil, &Error{Op: "fi_getinfo", Provider: h.Provider, Errno: errno, Detail: detail}
	}
	if err := available("fi_getinfo", h.Provider); err != nil {
		return nil, err
	}
	load()
	bare := h.bare()
	h.AddressFormat = h.format()
	raw, code := getInfo(h)
	if code != 0 {
		return nil, fail("fi_getinfo", h.Provider, int(code))
	}
	var infos []*Info
	misfit := ""
	for _, r := range raw {
		i := newInfo(r)
		if bare && layered(i) {
			continue
		}
		if detail := i.settleFormat(); detail != "" {
			misfit = detail
			continue
		}
		// Utility layers do not look at the names.
		if h.fits(i.Limits()) && (h.Fabric == "" || i.Fabric() == h.Fabric) && (h.Domain == "" || i.Domain() == h.Domain) {
			infos = append(infos, i)
		}
	}
	switch {
	case len(infos) > 0:
		return infos, nil
	case misfit != "":
		return nil, &Error{Op: "fi_getinfo", Provider: h.Provider, Errno: errnoInvalid, Detail: misfit}
	}
	return nil, &Error{Op: "fi_getinfo", Provider: h.Provider, Errno: errnoNoData}
}

// settleFormat has the info of a provider with addresses of sockets say of which family they are,
// which it takes from the hints as they are: without one, or with either, an address vector of
// sockets fails and its domain cannot be closed, and endpoints of tcp fail. It says why the
// addresses in it are none: an endpoint of sockets would read beyond them.
func (i *Info) settleFormat() string {
	if !hasSocketAddresses(i.Provider()) || i.a.AddressFormat == cgo.FormatString {
		return ""
	}
	format := cgo.FormatIPv4
	for _, address := range [][]byte{i.a.Source, i.a.Destination} {
		if len(address) == 0 {
			continue
		}
		if detail := wrongSocketAddress(i.a.AddressFormat, address); detail != "" {
			return detail
		}
		if len(address) == sizeofIPv6 {
			format = cgo.FormatIPv6
		}
	}
	for _, address := range [][]byte{i.a.Source, i.a.Destination} {
		if len(address) > 0 && wrongSocketAddress(format, address) != "" {
			return "the source and the destination are addresses of different families"
		}
	}
	if f := i.AddressFormat(); f == FormatUnspecified || f == FormatSocket {
		i.raw.SetAddressFormat(format)
		i.a.AddressFormat = format
	}
	return ""
}

// hasSocketAddresses says that a provider's addresses are those of sockets.
func hasSocketAddresses(provider string) bool {
	switch core(provider) {
	case "sockets", "tcp", "udp", "net":
		return true
	}
	return false
}

// Provider is the provider's name with its utility layers, "tcp;ofi_rxm".
func (i *Info) Provider() string { return i.a.Provider }

// ProviderVersion is the provider's own version.
func (i *Info) ProviderVersion() Version {
	return version(cgo.Version(i.a.ProviderVersion))
}

// APIVersion is the version of libfabric's API that the info was asked with;
// providers behave as of then.
func (i *Info) APIVersion() Version { return version(cgo.Version(i.a.APIVersion)) }

// Fabric is the name of the network.
func (i *Info) Fabric() string { return i.a.Fabric }

// Domain is the name of the interface or device.
func (i *Info) Domain() string { return i.a.Domain }

// Endpoint is the type of endpoint.
func (i *Info) Endpoint() EndpointType { return EndpointType(i.a.EndpointType) }

// Protocol is what the endpoint speaks on the wire.
func (i *Info) Protocol() Protocol { return Protocol(i.a.Protocol) }

// ProtocolVersion is the version of what it speaks.
func (i *Info) ProtocolVersion() uint32 { return i.a.ProtocolVersion }

// Capabilities are those that the endpoint has.
func (i *Info) Capabilities() Capabilities { return Capabilities(i.a.Caps) }

// Mode is what the provider asks of operations.
func (i *Info) Mode() Mode { return Mode(i.a.Mode) }

// MemoryMode is what the provider asks of memory and keys.
func (i *Info) MemoryMode() MemoryMode { return MemoryMode(i.a.MRMode) }

// AddressFormat says what addresses are.
func (i *Info) AddressFormat() AddressFormat { return AddressFormat(i.a.AddressFormat) }

// SourceAddress is the address that an endpoint would be bound to, nil where
// the provider has not said. The caller may keep it.
func (i *Info) SourceAddress() []byte { return bytes.Clone(i.a.Source) }

// SourceName is the SourceAddress as people write it, without a port: the address of
// an interface, on efa the GID of the device. It is empty where the provider has not
// said, and hexadecimal where weft does not know how the address is written.
func (i *Info) SourceName() string { return addressName(i.AddressFormat(), i.a.Source) }

// DestinationAddress is the address of the peer that the hints named, or that
// asked for a connection; nil where there is none. The caller may keep it.
func (i *Info) DestinationAddress() []byte { return bytes.Clone(i.a.Destination) }

// Progress is the provider's model for data.
func (i *Info) Progress() Progress { return Progress(i.a.DataProgress) }

// ControlProgress is the provider's model for control operations.
func (i *Info) ControlProgress() Progress { return Progress(i.a.ControlProgress) }

// Threading is what the provider expects not to happen at the same time.
func (i *Info) Threading() Threading { return Threading(i.a.Threading) }

// ResourceManagement says who keeps queues from overflowing.
func (i *Info) ResourceManagement() ResourceManagement {
	return ResourceManagement(i.a.ResourceManagement)
}

// AddressVector is the type of address vector; 0 means any.
func (i *Info) AddressVector() AddressVectorType { return AddressVectorType(i.a.AVType) }

// OrderedSends says whether messages of one sender match in order.
func (i *Info) OrderedSends() bool {
	return i.a.TxOrder&i.a.RxOrder&cgo.OrderSAS != 0
}

// MaxMessage is the longest message in bytes.
func (i *Info) MaxMessage() uint64 { return i.a.MaxMessage }

// PrefixSize is the room in bytes before a message that MessagePrefix asks for.
func (i *Info) PrefixSize() uint64 { return i.a.PrefixSize }

// InjectSize is the longest message in bytes that can be injected.
func (i *Info) InjectSize() uint64 { return i.a.InjectSize }

// SendQueue is how many sends the endpoint holds.
func (i *Info) SendQueue() uint64 { return i.a.TxSize }

// ReceiveQueue is how many receives the endpoint holds.
func (i *Info) ReceiveQueue() uint64 { return i.a.RxSize }

// TagBits are the bits of a tag that the provider carries, in the notation of
// mem_tag_format.
func (i *Info) TagBits() uint64 { return i.a.TagFormat }

// ImmediateSize is how many bytes of immediate data travel with an operation.
func (i *Info) ImmediateSize() int { return int(min(i.a.ImmediateSize, 8)) }

// KeySize is how many bytes a remote key has; more than 8 are a raw key.
func (i *Info) KeySize() uint64 { return i.a.KeySize }

// AuthorizationKey is the key of the endpoint, or else of the domain; nil where
// there is none. The caller may keep it.
func (i *Info) AuthorizationKey() []byte {
	if len(i.a.AuthKey) > 0 {
		return bytes.Clone(i.a.AuthKey)
	}
	return bytes.Clone(i.a.DomainAuthKey)
}

// TrafficClass is that of the domain, the default of its endpoints.
func (i *Info) TrafficClass() TrafficClass { return TrafficClass(i.a.TrafficClass) }

// IP says that addresses are those of IPv4 or IPv6 sockets.
func (i *Info) IP() bool {
	switch i.a.AddressFormat {
	case cgo.FormatSocket, cgo.FormatIPv4, cgo.FormatIPv6:
		return true
	}
	return false
}

// String is libfabric's own listing of everything in it (fi_tostr).
//
// Implements: char *fi_tostr_r(...)
func (i *Info) String() string {
	defer runtime.KeepAlive(i)
	return i.raw.String()
}

// there refuses an info that is none: libfabric would look into it unchecked.
func (i *Info) there(op string) error {
	if err := available(op, ""); err != nil {
		return err
	}
	if i == nil || i.raw == (cgo.Info{}) {
		return &Error{Op: op, Errno: errnoInvalid, Detail: "it takes an info that Discover has returned"}
	}
	return nil
}

// core is the provider's name without utility layers.
func core(provider string) string {
	name, _, _ := strings.Cut(provider, ";")
	return name
}

// layered says whether the provider has utility layers.
func layered(i *Info) bool { return i.Provider() != core(i.Provider()) }
