package fabric

import (
	"errors"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// SizeOption is an option of an endpoint whose value is a number of bytes or of
// something else, which is said with each.
type SizeOption int

// The options for Endpoint.SizeOption. Those with Max and Inject can be read in
// libfabric 1.22 and later; where they are set, it is before Enable, to a
// smaller number.
const (
	// OptionMinMultiReceive is how many bytes a MultiReceive buffer must have left to stay posted
	// (FI_OPT_MIN_MULTI_RECV), 64 unless it is set. It can be at any time, and counts from then on; with
	// 0 a buffer stays until it is full. Connected endpoints of tcp have what the provider begins with.
	OptionMinMultiReceive SizeOption = SizeOption(cgo.OptMinMultiReceive)
	// OptionConnectionData is the most bytes that go along with a request for
	// a connection and the answer (FI_OPT_CM_DATA_SIZE). It can only be read.
	OptionConnectionData SizeOption = SizeOption(cgo.OptConnectionData)
	// OptionBufferedMin and OptionBufferedLimit are bytes of the buffered
	// receives that libfabric 2.0 did away with (FI_OPT_BUFFERED_MIN,
	// FI_OPT_BUFFERED_LIMIT).
	OptionBufferedMin   SizeOption = SizeOption(cgo.OptBufferedMin)
	OptionBufferedLimit SizeOption = SizeOption(cgo.OptBufferedLimit)
	// OptionSendBuffer and OptionReceiveBuffer are the bytes of the buffers of
	// the sockets below (FI_OPT_SEND_BUF_SIZE, FI_OPT_RECV_BUF_SIZE).
	OptionSendBuffer    SizeOption = SizeOption(cgo.OptSendBuffer)
	OptionReceiveBuffer SizeOption = SizeOption(cgo.OptReceiveBuffer)
	// OptionSendQueue and OptionReceiveQueue are how many operations the
	// endpoint holds (FI_OPT_TX_SIZE, FI_OPT_RX_SIZE).
	OptionSendQueue    SizeOption = SizeOption(cgo.OptTxSize)
	OptionReceiveQueue SizeOption = SizeOption(cgo.OptRxSize)

	// The longest message, tagged message, remote read or write and atomic
	// operation in bytes (FI_OPT_MAX_MSG_SIZE and so on).
	OptionMaxMessage SizeOption = SizeOption(cgo.OptMaxMessage)
	OptionMaxTagged  SizeOption = SizeOption(cgo.OptMaxTagged)
	OptionMaxRemote  SizeOption = SizeOption(cgo.OptMaxRMA)
	OptionMaxAtomic  SizeOption = SizeOption(cgo.OptMaxAtomic)
	// The same for what is injected (FI_OPT_INJECT_MSG_SIZE and so on).
	OptionInjectMessage SizeOption = SizeOption(cgo.OptInjectMessage)
	OptionInjectTagged  SizeOption = SizeOption(cgo.OptInjectTagged)
	OptionInjectRemote  SizeOption = SizeOption(cgo.OptInjectRMA)
	OptionInjectAtomic  SizeOption = SizeOption(cgo.OptInjectAtomic)

	// OptionEFARetries is how often efa's device tries again when the peer has
	// no receive posted, 0 to 7; 7, which is what endpoints begin with, is
	// [RetryForever] (FI_OPT_EFA_RNR_RETRY). Set it before Enable. When it gives
	// up, an operation fails with FI_ENORX where the info's resource management
	// is ResourcesDisabled, and an inject is lost; else the provider tries again.
	OptionEFARetries SizeOption = SizeOption(cgo.OptEFARetryReceiver)
)

// BoolOption is an option of an endpoint that is on or off.
type BoolOption int

// The options for Endpoint.BoolOption, with the version of libfabric that has
// them. Those that can be set are set before Enable.
const (
	// OptionCUDAPermitted lets the provider call CUDA, which can block while
	// the program does (FI_OPT_CUDA_API_PERMITTED, 1.18).
	OptionCUDAPermitted BoolOption = BoolOption(cgo.OptCUDAPermitted)
	// OptionSharedMemoryPermitted lets the provider go through shared memory
	// between processes of one host (FI_OPT_SHARED_MEMORY_PERMITTED, 1.21).
	OptionSharedMemoryPermitted BoolOption = BoolOption(cgo.OptSharedMemoryPermitted)

	// OptionEFAEmulatedRead, OptionEFAEmulatedWrite and
	// OptionEFAEmulatedAtomics say that efa does these in software
	// (FI_OPT_EFA_EMULATED_READ and so on, 1.18). They can only be read.
	OptionEFAEmulatedRead    BoolOption = BoolOption(cgo.OptEFAEmulatedRead)
	OptionEFAEmulatedWrite   BoolOption = BoolOption(cgo.OptEFAEmulatedWrite)
	OptionEFAEmulatedAtomics BoolOption = BoolOption(cgo.OptEFAEmulatedAtomics)
	// OptionEFADeviceRDMA has efa's device read and write remote memory
	// (FI_OPT_EFA_USE_DEVICE_RDMA, 1.18).
	OptionEFADeviceRDMA BoolOption = BoolOption(cgo.OptEFADeviceRDMA)
	// OptionEFASendInOrder and OptionEFAWriteInOrder have the bytes of each
	// aligned block of 128 arrive in order, and once
	// (FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES and
	// FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES, 1.20).
	OptionEFASendInOrder  BoolOption = BoolOption(cgo.OptEFASendInOrder)
	OptionEFAWriteInOrder BoolOption = BoolOption(cgo.OptEFAWriteInOrder)
	// OptionEFAHomogeneousPeers promises that all peers have the same device
	// and version, which saves a handshake (FI_OPT_EFA_HOMOGENEOUS_PEERS, 2.2).
	OptionEFAHomogeneousPeers BoolOption = BoolOption(cgo.OptEFAHomogeneousPeers)
)

// PeerToPeer says whether devices and the network interface reach each other's
// memory without the host's (FI_OPT_FI_HMEM_P2P).
type PeerToPeer int

// The values of PeerToPeer.
const (
	PeerToPeerEnabled   PeerToPeer = PeerToPeer(cgo.PeerToPeerEnabled)   // as the provider likes
	PeerToPeerRequired  PeerToPeer = PeerToPeer(cgo.PeerToPeerRequired)  // for every transfer
	PeerToPeerPreferred PeerToPeer = PeerToPeer(cgo.PeerToPeerPreferred) // where it can be
	PeerToPeerDisabled  PeerToPeer = PeerToPeer(cgo.PeerToPeerDisabled)  // never
)

// String is libfabric's name.
func (p PeerToPeer) String() string {
	return names[PeerToPeer]{
		PeerToPeerEnabled: "FI_HMEM_P2P_ENABLED", PeerToPeerRequired: "FI_HMEM_P2P_REQUIRED",
		PeerToPeerPreferred: "FI_HMEM_P2P_PREFERRED", PeerToPeerDisabled: "FI_HMEM_P2P_DISABLED",
	}.of(p)
}

// optionNames are libfabric's.
var optionNames = names[cgo.Option]{
	cgo.OptMinMultiReceive: "FI_OPT_MIN_MULTI_RECV", cgo.OptConnectionData: "FI_OPT_CM_DATA_SIZE",
	cgo.OptBufferedMin: "FI_OPT_BUFFERED_MIN", cgo.OptBufferedLimit: "FI_OPT_BUFFERED_LIMIT",
	cgo.OptSendBuffer: "FI_OPT_SEND_BUF_SIZE", cgo.OptReceiveBuffer: "FI_OPT_RECV_BUF_SIZE",
	cgo.OptTxSize: "FI_OPT_TX_SIZE", cgo.OptRxSize: "FI_OPT_RX_SIZE",
	cgo.OptMaxMessage: "FI_OPT_MAX_MSG_SIZE", cgo.OptMaxTagged: "FI_OPT_MAX_TAGGED_SIZE",
	cgo.OptMaxRMA: "FI_OPT_MAX_RMA_SIZE", cgo.OptMaxAtomic: "FI_OPT_MAX_ATOMIC_SIZE",
	cgo.OptInjectMessage: "FI_OPT_INJECT_MSG_SIZE", cgo.OptInjectTagged: "FI_OPT_INJECT_TAGGED_SIZE",
	cgo.OptInjectRMA: "FI_OPT_INJECT_RMA_SIZE", cgo.OptInjectAtomic: "FI_OPT_INJECT_ATOMIC_SIZE",
	cgo.OptHMEMPeerToPeer: "FI_OPT_FI_HMEM_P2P",
	cgo.OptCUDAPermitted:  "FI_OPT_CUDA_API_PERMITTED", cgo.OptSharedMemoryPermitted: "FI_OPT_SHARED_MEMORY_PERMITTED",
	cgo.OptEFARetryReceiver: "FI_OPT_EFA_RNR_RETRY", cgo.OptEFAEmulatedRead: "FI_OPT_EFA_EMULATED_READ",
	cgo.OptEFAEmulatedWrite: "FI_OPT_EFA_EMULATED_WRITE", cgo.OptEFAEmulatedAtomics: "FI_OPT_EFA_EMULATED_ATOMICS",
	cgo.OptEFADeviceRDMA:       "FI_OPT_EFA_USE_DEVICE_RDMA",
	cgo.OptEFASendInOrder:      "FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES",
	cgo.OptEFAWriteInOrder:     "FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES",
	cgo.OptEFAHomogeneousPeers: "FI_OPT_EFA_HOMOGENEOUS_PEERS",
}

// boolOptions are on or off.
var boolOptions = map[cgo.Option]bool{
	cgo.OptCUDAPermitted: true, cgo.OptSharedMemoryPermitted: true, cgo.OptEFAEmulatedRead: true, cgo.OptEFAEmulatedWrite: true,
	cgo.OptEFAEmulatedAtomics: true, cgo.OptEFADeviceRDMA: true, cgo.OptEFASendInOrder: true, cgo.OptEFAWriteInOrder: true,
	cgo.OptEFAHomogeneousPeers: true,
}

// wrongOption says why an option cannot have values of type T. Not all providers look at
// how long a value is before they read or write it.
func wrongOption[T any](o cgo.Option) string {
	if _, known := optionNames[o]; !known {
		return "there is no such option"
	}
	var value T
	_, isBool := any(value).(bool)
	_, isInt := any(value).(int)
	if isBool != boolOptions[o] || isInt != (o == cgo.OptHMEMPeerToPeer) {
		return "the option has values of another type: SizeOption, BoolOption and PeerToPeer each have their own"
	}
	return ""
}

func optionName(o cgo.Option) string { return optionNames.numbered(o, "option ") }

// String is libfabric's name.
func (o SizeOption) String() string { return optionName(cgo.Option(o)) }

// String is libfabric's name.
func (o BoolOption) String() string { return optionName(cgo.Option(o)) }

// SizeOption reads an option. ErrNotSupported says that the provider does not
// have it, or that the library at hand is too old for it; ErrInvalid that there is
// no such option, or that shm is asked before Enable.
//
// Implements: int fi_getopt(...)
func (e *Endpoint) SizeOption(o SizeOption) (value uint64, err error) {
	return readOption(e, cgo.Option(o), e.sizeOption)
}

// SetSizeOption sets an option, by one goroutine while no other uses the
// endpoint. The errors are those of SizeOption, and ErrInvalid for a value that
// the provider does not take, or not any more.
//
// Implements: int fi_setopt(...)
func (e *Endpoint) SetSizeOption(o SizeOption, value uint64) error {
	return setOption(e, cgo.Option(o), e.setSizeOption, value)
}

func (e *Endpoint) sizeOption(raw cgo.Endpoint, o cgo.Option) (value uint64, code cgo.Code) {
	if e.hasLeast(o) {
		return e.several.least, 0
	}
	return raw.SizeOption(o)
}

func (e *Endpoint) setSizeOption(raw cgo.Endpoint, o cgo.Option, value uint64) cgo.Code {
	if e.hasLeast(o) {
		e.several.least = value
		return 0
	}
	return raw.SetSizeOption(o, value)
}

// BoolOption reads an option; the errors are those of SizeOption.
//
// Implements: int fi_getopt(...)
func (e *Endpoint) BoolOption(o BoolOption) (value bool, err error) {
	return readOption(e, cgo.Option(o), cgo.Endpoint.BoolOption)
}

// SetBoolOption sets an option, as SetSizeOption does.
//
// Implements: int fi_setopt(...)
func (e *Endpoint) SetBoolOption(o BoolOption, value bool) error {
	err := setOption(e, cgo.Option(o), cgo.Endpoint.SetBoolOption, value)
	if err == nil && o == OptionSharedMemoryPermitted {
		e.deviceAlone.Store(!value)
	}
	return err
}

// PeerToPeer reads how device memory is reached; the errors are those of
// SizeOption.
//
// Implements: int fi_getopt(...)
func (e *Endpoint) PeerToPeer() (value PeerToPeer, err error) {
	n, err := readOption(e, cgo.OptHMEMPeerToPeer, cgo.Endpoint.IntOption)
	return PeerToPeer(n), err
}

// SetPeerToPeer sets how device memory is reached, before Enable, as
// SetSizeOption does.
//
// Implements: int fi_setopt(...)
func (e *Endpoint) SetPeerToPeer(value PeerToPeer) error {
	return setOption(e, cgo.OptHMEMPeerToPeer, cgo.Endpoint.SetIntOption, int(value))
}

// readOption reads an option of an open endpoint by the call for values of its
// type, and setOption sets one.
func readOption[T any](e *Endpoint, o cgo.Option, read func(cgo.Endpoint, cgo.Option) (T, cgo.Code)) (value T, err error) {
	err = e.option("fi_getopt of ", o, wrongOption[T](o), func() (code cgo.Code) {
		value, code = read(e.raw, o)
		return code
	})
	return value, err
}

func setOption[T any](e *Endpoint, o cgo.Option, set func(cgo.Endpoint, cgo.Option, T) cgo.Code, value T) error {
	wrong := wrongOption[T](o)
	if n, ok := any(value).(uint64); ok && o == cgo.OptEFARetryReceiver && n > RetryForever {
		wrong = "efa's device tries 0 to 7 times, and 7 means for ever"
	}
	refusal := "the provider does not take the value"
	err := e.option("fi_setopt of ", o, wrong, func() cgo.Code {
		if e.turn != nil {
			refusal += ", or takes none after Enable"
		}
		return set(e.raw, o, value)
	})
	var bare *Error
	if errors.As(err, &bare) && bare.Errno == Errno(syscall.EINVAL) && bare.Detail == "" {
		bare.Detail = refusal
	}
	return err
}

// option makes one call about an option of an open endpoint, unless something is wrong.
func (e *Endpoint) option(op string, o cgo.Option, wrong string, call func() cgo.Code) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := e.whole(op + optionName(o)); err != nil {
		return err
	}
	if wrong != "" {
		return e.invalid(op+optionName(o), wrong)
	}
	if part := e.connection.part; o == cgo.OptMinMultiReceive && (part == transmitContext || part == sharingReceive) {
		// sockets would take a send context for a receive context.
		detail := "nothing is received here"
		if part == sharingReceive {
			detail = "it is an option of the shared receive context"
		}
		return &Error{Op: op + optionName(o), Provider: e.provider, Errno: Errno(syscall.EOPNOTSUPP), Detail: detail}
	}
	if e.turn == nil && core(e.provider) == "shm" && !e.hasLeast(o) {
		// It would look for the option in what it makes on fi_enable.
		return e.invalid(op+optionName(o), "the shm provider has options only once the endpoint is enabled")
	}
	return optionError(op+optionName(o), e.provider, call())
}

// optionError is what a call about an option has returned.
func optionError(op, provider string, code cgo.Code) error {
	switch {
	case int(code) == int(syscall.ENOPROTOOPT):
		return &Error{Op: op, Provider: provider, Errno: Errno(syscall.EOPNOTSUPP), Detail: "the provider does not have the option"}
	case code == cgo.BadState:
		return &Error{Op: op, Provider: provider, Errno: errnoInvalid, Detail: "the provider takes the option before Enable only"}
	case code == cgo.NoSystem:
		return &Error{Op: op, Provider: provider, Errno: Errno(code), Detail: "the provider, or libfabric " + LibraryVersion().String() + ", does not have the option"}
	}
	return fail(op, provider, int(code))
}
