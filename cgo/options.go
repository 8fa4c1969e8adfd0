//go:build linux

package cgo

/*
#include "options.h"
*/
import "C"

// Option is an option of endpoints (FI_OPT_ENDPOINT).
type Option int

// Options whose value is a size_t.
const (
	OptMinMultiReceive  Option = C.WEFT_OPT_MIN_MULTI_RECV
	OptConnectionData   Option = C.WEFT_OPT_CM_DATA_SIZE
	OptBufferedMin      Option = C.WEFT_OPT_BUFFERED_MIN
	OptBufferedLimit    Option = C.WEFT_OPT_BUFFERED_LIMIT
	OptSendBuffer       Option = C.WEFT_OPT_SEND_BUF_SIZE
	OptReceiveBuffer    Option = C.WEFT_OPT_RECV_BUF_SIZE
	OptTxSize           Option = C.WEFT_OPT_TX_SIZE
	OptRxSize           Option = C.WEFT_OPT_RX_SIZE
	OptMaxMessage       Option = C.WEFT_OPT_MAX_MSG_SIZE
	OptMaxTagged        Option = C.WEFT_OPT_MAX_TAGGED_SIZE
	OptMaxRMA           Option = C.WEFT_OPT_MAX_RMA_SIZE
	OptMaxAtomic        Option = C.WEFT_OPT_MAX_ATOMIC_SIZE
	OptInjectMessage    Option = C.WEFT_OPT_INJECT_MSG_SIZE
	OptInjectTagged     Option = C.WEFT_OPT_INJECT_TAGGED_SIZE
	OptInjectRMA        Option = C.WEFT_OPT_INJECT_RMA_SIZE
	OptInjectAtomic     Option = C.WEFT_OPT_INJECT_ATOMIC_SIZE
	OptEFARetryReceiver Option = C.WEFT_OPT_EFA_RNR_RETRY
)

// Options whose value is an int, and those whose value is a bool.
const (
	OptHMEMPeerToPeer Option = C.WEFT_OPT_HMEM_P2P

	OptCUDAPermitted         Option = C.WEFT_OPT_CUDA_API_PERMITTED
	OptSharedMemoryPermitted Option = C.WEFT_OPT_SHARED_MEMORY_PERMITTED
	OptEFAEmulatedRead       Option = C.WEFT_OPT_EFA_EMULATED_READ
	OptEFAEmulatedWrite      Option = C.WEFT_OPT_EFA_EMULATED_WRITE
	OptEFAEmulatedAtomics    Option = C.WEFT_OPT_EFA_EMULATED_ATOMICS
	OptEFADeviceRDMA         Option = C.WEFT_OPT_EFA_USE_DEVICE_RDMA
	OptEFASendInOrder        Option = C.WEFT_OPT_EFA_SENDRECV_IN_ORDER
	OptEFAWriteInOrder       Option = C.WEFT_OPT_EFA_WRITE_IN_ORDER
	OptEFAHomogeneousPeers   Option = C.WEFT_OPT_EFA_HOMOGENEOUS_PEERS
)

// Values of OptHMEMPeerToPeer.
const (
	PeerToPeerEnabled   = int(C.FI_HMEM_P2P_ENABLED)
	PeerToPeerRequired  = int(C.FI_HMEM_P2P_REQUIRED)
	PeerToPeerPreferred = int(C.FI_HMEM_P2P_PREFERRED)
	PeerToPeerDisabled  = int(C.FI_HMEM_P2P_DISABLED)
)

// SizeOption reads an option whose value is a size_t. Options that these
// headers do not have are NoSystem.
//
// Implements: int fi_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
func (e Endpoint) SizeOption(o Option) (uint64, Code) { return e.option(o, C.WEFT_VALUE_SIZE) }

// SizeOption reads an option of a passive endpoint (fi_getopt).
func (p PassiveEndpoint) SizeOption(o Option) (uint64, Code) {
	var value C.uint64_t
	code := codeOf(C.weft_getopt(&p.p.fid, C.int(o), C.WEFT_VALUE_SIZE, &value))
	return uint64(value), code
}

// IntOption reads an option whose value is an int (fi_getopt).
func (e Endpoint) IntOption(o Option) (int, Code) {
	value, code := e.option(o, C.WEFT_VALUE_INT)
	return int(int64(value)), code
}

// BoolOption reads an option whose value is a bool (fi_getopt).
func (e Endpoint) BoolOption(o Option) (bool, Code) {
	value, code := e.option(o, C.WEFT_VALUE_BOOL)
	return value != 0, code
}

// SetSizeOption sets an option whose value is a size_t.
//
// Implements: int fi_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
func (e Endpoint) SetSizeOption(o Option, value uint64) Code {
	return e.setOption(o, C.WEFT_VALUE_SIZE, value)
}

// SetIntOption sets an option whose value is an int (fi_setopt).
func (e Endpoint) SetIntOption(o Option, value int) Code {
	return e.setOption(o, C.WEFT_VALUE_INT, uint64(int64(value)))
}

// SetBoolOption sets an option whose value is a bool (fi_setopt).
func (e Endpoint) SetBoolOption(o Option, value bool) Code {
	var n uint64
	if value {
		n = 1
	}
	return e.setOption(o, C.WEFT_VALUE_BOOL, n)
}

func (e Endpoint) option(o Option, kind C.int) (uint64, Code) {
	var value C.uint64_t
	code := codeOf(C.weft_getopt(&e.p.fid, C.int(o), kind, &value))
	return uint64(value), code
}

func (e Endpoint) setOption(o Option, kind C.int, value uint64) Code {
	return codeOf(C.weft_setopt(&e.p.fid, C.int(o), kind, C.uint64_t(value)))
}
