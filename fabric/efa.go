package fabric

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// cacheNothing has the efa provider forget a registration when it is closed. It
// would keep it for the next one of the same addresses, and hears only from C's
// own functions when there is other memory there: Go's runtime and arenas go past
// them, and the device would go on with the pages of before. Whoever sets one of
// the variables decides otherwise.
func cacheNothing() []string {
	const cache, monitor = "FI_EFA_MR_CACHE_ENABLE", "FI_MR_CACHE_MONITOR"
	for _, name := range []string{cache, monitor} {
		if _, set := os.LookupEnv(name); set {
			return nil
		}
	}
	return []string{cache}
}

// RetryForever has the device of an efa endpoint try for as long as it takes while
// the peer has no room for a message ([OptionEFARetries]).
const RetryForever = 7

// retryForever is what endpoints of efa begin with. Left to itself the provider has
// its device give up after 3 times and sends again by its own list, and libfabric
// 2.1 then takes the bytes of a short inject from where the caller had them, which
// is the caller's again.
func (e *Endpoint) retryForever() error {
	err := e.SetSizeOption(OptionEFARetries, RetryForever)
	if errors.Is(err, ErrNotSupported) {
		// A device that cannot be told tries for ever.
		return nil
	}
	return err
}

// configure sets what a port's config says of efa, and nothing elsewhere.
func (e *Endpoint) configure(config PortConfig) error {
	if config.Retries < 0 || config.Retries >= RetryForever {
		return e.invalid("port", "0 to 6 retries, not "+strconv.Itoa(config.Retries))
	}
	if core(e.provider) != "efa" {
		return nil
	}
	if config.Retries > 0 {
		if e.Info().ResourceManagement() != ResourcesDisabled {
			return e.invalid("port", "the provider goes on trying by itself, unless the info has ResourcesDisabled")
		}
		if err := e.SetSizeOption(OptionEFARetries, uint64(config.Retries)); err != nil {
			return err
		}
	}
	if config.NoSharedMemory && sharesWithinHost() {
		return e.SetBoolOption(OptionSharedMemoryPermitted, false)
	}
	return nil
}

// readsByDevice says that the device reads memory of peers. Where the provider of efa
// does it, by messages that ask for it, one for memory that is not registered any more
// is never answered; and the message itself would have come as fast.
func (e *Endpoint) readsByDevice() (bool, error) {
	if LibraryVersion().Major < 2 {
		// Before it knows what the peer can do, libfabric 1.17 has the provider read.
		return false, nil
	}
	emulated, err := e.BoolOption(OptionEFAEmulatedRead)
	return !emulated, err
}

// An efa provider before libfabric 1.19 calls whatever its device reports an
// input/output error. deviceErrnos has what later ones call it, by the device's
// status.
var deviceErrnos = map[int32]Errno{
	1:  Errno(syscall.ECANCELED),    // flushed
	7:  Errno(syscall.EINVAL),       // remote address or key
	8:  Errno(syscall.ECONNABORTED), // reset by the peer
	9:  Errno(syscall.ENOTCONN),     // nobody has the queue pair, or not any more
	10: 269,                         // FI_ENORX: the receiver was not ready
	12: errnoRemoteIO,               // the peer's queue pair is in a wrong state
	13: Errno(syscall.ECONNABORTED), // the peer does not answer
	14: Errno(syscall.ENOTCONN),     // the peer does not know this endpoint
	15: Errno(syscall.EHOSTUNREACH),
}

// failedAs is the code of what has failed.
func failedAs(provider string, errno Errno, status int32) Errno {
	if errno == Errno(syscall.EIO) && core(provider) == "efa" {
		if e, ok := deviceErrnos[status]; ok {
			return e
		}
	}
	return errno
}

// registered says of endpoints that they use the descriptor of a buffer without
// looking whether there is one: those of efa that are the device's own, for
// datagrams and, from libfabric 2.1 on, in the fabric efa-direct.
func registered(i *Info) bool {
	return core(i.Provider()) == "efa" && (i.Endpoint() == Datagram || i.Fabric() == "efa-direct")
}

// unregistered says whether an operation has a buffer without a descriptor, and is
// none of those that have none.
func (o *Op) unregistered() bool {
	if kinds[o.Kind].inject {
		return false
	}
	for i, b := range o.Vector {
		if len(b) > 0 && (i >= len(o.Descriptors) || o.Descriptors[i] == 0) {
			return true
		}
	}
	return len(o.Buf) > 0 && o.Descriptor == 0
}
