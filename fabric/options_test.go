package fabric_test

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// bare opens an endpoint, which enable enables; it has been by the end, because
// the tcp provider of libfabric 1.17 cannot close one that is not.
func bare(t *testing.T, provider string) (e *fabric.Endpoint, enable func()) {
	t.Helper()
	f, d := domainOf(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.MultiReceiveBuffers)
	v, q, ev := vectorOf(t, d), queueOf(t, d, 64), eventsOf(t, f)
	e = endpointOf(t, d)
	enable = sync.OnceFunc(func() { require.NoError(t, e.Enable(v, q, ev)) })
	t.Cleanup(enable)
	if provider == "shm" {
		_, err := e.SizeOption(fabric.OptionConnectionData)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		require.ErrorContains(t, err, "only once the endpoint is enabled")
		enable()
	}
	return e, enable
}

func sizeOptions() []fabric.SizeOption {
	return []fabric.SizeOption{
		fabric.OptionMinMultiReceive, fabric.OptionConnectionData,
		fabric.OptionBufferedMin, fabric.OptionBufferedLimit,
		fabric.OptionSendBuffer, fabric.OptionReceiveBuffer,
		fabric.OptionSendQueue, fabric.OptionReceiveQueue,
		fabric.OptionMaxMessage, fabric.OptionMaxTagged, fabric.OptionMaxRemote, fabric.OptionMaxAtomic,
		fabric.OptionInjectMessage, fabric.OptionInjectTagged, fabric.OptionInjectRemote, fabric.OptionInjectAtomic,
		fabric.OptionEFARetries,
	}
}

func boolOptions() []fabric.BoolOption {
	return []fabric.BoolOption{
		fabric.OptionCUDAPermitted, fabric.OptionSharedMemoryPermitted,
		fabric.OptionEFAEmulatedRead, fabric.OptionEFAEmulatedWrite, fabric.OptionEFAEmulatedAtomics,
		fabric.OptionEFADeviceRDMA, fabric.OptionEFASendInOrder, fabric.OptionEFAWriteInOrder,
		fabric.OptionEFAHomogeneousPeers,
	}
}

// Every option is either there, or ErrNotSupported: none crashes, whatever the
// provider.
func TestEveryOption(t *testing.T) {
	older := fabric.HeaderVersion().Major < 2
	each(t, func(t *testing.T, provider string) {
		e, _ := bare(t, provider)
		for _, option := range sizeOptions() {
			_, err := e.SizeOption(option)
			since2 := option >= fabric.OptionMaxMessage && option <= fabric.OptionInjectAtomic
			requireOption(t, option.String(), err, since2 && older)
			if since2 && older {
				require.ErrorIs(t, e.SetSizeOption(option, 1), fabric.ErrNotSupported)
			}
		}
		for _, option := range boolOptions() {
			_, err := e.BoolOption(option)
			requireOption(t, option.String(), err, older)
			requireOption(t, option.String(), e.SetBoolOption(option, false), older)
		}
		_, err := e.PeerToPeer()
		requireOption(t, "FI_OPT_FI_HMEM_P2P", err, false)
		requireOption(t, "FI_OPT_FI_HMEM_P2P", e.SetPeerToPeer(fabric.PeerToPeerDisabled), false)
	})
}

func requireOption(t *testing.T, name string, err error, missing bool) {
	t.Helper()
	require.Contains(t, name, "FI_OPT_")
	if err == nil {
		require.False(t, missing, name)
		return
	}
	require.ErrorContains(t, err, name)
	// shm and sockets answer with the code of a wrong argument to what they do
	// not know.
	require.True(t, errors.Is(err, fabric.ErrNotSupported) || !missing && errors.Is(err, fabric.ErrInvalid), "%v", err)
}

func TestWrongOption(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		e, enable := bare(t, provider)
		_, err := e.SizeOption(4711)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		require.ErrorContains(t, err, "option 4711")
		require.ErrorIs(t, e.SetBoolOption(-1, true), fabric.ErrInvalid)
		enable()
		// What is too late for an option is said as what is wrong with it.
		for _, option := range sizeOptions() {
			err := e.SetSizeOption(option, 4096)
			requireOption(t, option.String(), err, false)
			var wrong *fabric.Error
			require.True(t, !errors.As(err, &wrong) || wrong.Detail != "", "%v", err)
		}
		require.NoError(t, e.Close())
		_, err = e.SizeOption(fabric.OptionMinMultiReceive)
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, e.SetSizeOption(fabric.OptionMinMultiReceive, 1), net.ErrClosed)
	})
}

// optionsOf says what providers do with the options that they know; every other one
// is ErrNotSupported. "set" means that what was set can be read where it can be read
// at all, "ignored" that it is taken without effect, "known" that the provider has
// the option, and that it depends on the machine whether the value is taken.
func optionsOf(provider string, older bool) map[string]string {
	sizes := func(of map[string]string) map[string]string {
		for _, what := range []string{"MSG", "TAGGED", "RMA", "ATOMIC"} {
			of["FI_OPT_MAX_"+what+"_SIZE"], of["FI_OPT_INJECT_"+what+"_SIZE"] = "read, set", "read, set"
		}
		return of
	}
	switch {
	case provider == "sockets":
		return map[string]string{"FI_OPT_MIN_MULTI_RECV": "read, set", "FI_OPT_CM_DATA_SIZE": "read"}
	case provider == "tcp" && older:
		return map[string]string{
			"FI_OPT_MIN_MULTI_RECV": "read, set", "FI_OPT_BUFFERED_MIN": "read, set", "FI_OPT_BUFFERED_LIMIT": "read, set",
		}
	case provider == "shm" && !older:
		return map[string]string{"FI_OPT_MIN_MULTI_RECV": "read, set", "FI_OPT_CUDA_API_PERMITTED": "known"}
	case provider == "efa" && older:
		return map[string]string{
			"FI_OPT_MIN_MULTI_RECV": "read, set", "FI_OPT_EFA_RNR_RETRY": "read, set", "FI_OPT_FI_HMEM_P2P": "read, known",
		}
	case provider == "efa":
		return sizes(map[string]string{
			"FI_OPT_MIN_MULTI_RECV": "read, set", "FI_OPT_EFA_RNR_RETRY": "read, set", "FI_OPT_FI_HMEM_P2P": "read, known",
			"FI_OPT_CUDA_API_PERMITTED": "known", "FI_OPT_SHARED_MEMORY_PERMITTED": "known",
			"FI_OPT_EFA_EMULATED_READ": "read", "FI_OPT_EFA_EMULATED_WRITE": "read", "FI_OPT_EFA_EMULATED_ATOMICS": "read",
			"FI_OPT_EFA_USE_DEVICE_RDMA":                     "set",
			"FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES": "known",
			"FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES":    "known",
		})
	default:
		return map[string]string{"FI_OPT_MIN_MULTI_RECV": "read, set"}
	}
}

// Each provider has the options that it is known to have and no others, and what is
// set is what is read: so each number is that of the option that is meant.
func TestOptionsOfEachProvider(t *testing.T) {
	version := fabric.LibraryVersion()
	if v := version.String(); !strings.HasPrefix(v, "1.17") && !strings.HasPrefix(v, "2.1") {
		testenv.Need(t, "options", errors.New("those of providers are known of libfabric 1.17 and 2.1, and not of "+v))
	}
	each(t, func(t *testing.T, provider string) {
		e, _ := bare(t, provider)
		known := optionsOf(provider, version.Major < 2)
		seen := 0
		check := func(name string, was any, set func() (any, error), get func() (any, error), err error) {
			t.Helper()
			var does []string
			if err == nil {
				does = append(does, "read")
			}
			value, setErr := set()
			switch now, err := get(); {
			case setErr == nil && (err != nil || now == value):
				does = append(does, "set")
			case setErr == nil:
				require.Equal(t, was, now, name)
				does = append(does, "ignored")
			case strings.Contains(known[name], "known") && !strings.Contains(setErr.Error(), "does not have the option"):
				does = append(does, "known")
			}
			got := strings.Join(does, ", ")
			if strings.Contains(known[name], "known") {
				got = strings.Replace(got, "set", "known", 1)
			}
			require.Equal(t, known[name], got, "%s: read: %v, set: %v", name, err, setErr)
			if got != "" {
				seen++
			}
		}
		for i, option := range sizeOptions() {
			value := uint64(40 + i) // of its own
			if option == fabric.OptionEFARetries {
				value = 5
			}
			get := func() (any, error) { return e.SizeOption(option) }
			was, err := get()
			check(option.String(), was, func() (any, error) { return value, e.SetSizeOption(option, value) }, get, err)
		}
		// None has the value of another that was set after it.
		for i, option := range sizeOptions() {
			if known[option.String()] == "read, set" && option != fabric.OptionEFARetries {
				value, err := e.SizeOption(option)
				require.NoError(t, err)
				require.Equal(t, uint64(40+i), value, option.String())
			}
		}
		for _, option := range boolOptions() {
			get := func() (any, error) { return e.BoolOption(option) }
			was, err := get()
			value := was == false
			check(option.String(), was, func() (any, error) { return value, e.SetBoolOption(option, value) }, get, err)
		}
		get := func() (any, error) { return e.PeerToPeer() }
		was, err := get()
		check("FI_OPT_FI_HMEM_P2P", was, func() (any, error) {
			return fabric.PeerToPeerRequired, e.SetPeerToPeer(fabric.PeerToPeerRequired)
		}, get, err)
		require.Equal(t, len(known), seen)
	})
}

// An option is not read or set with values of another type: sockets writes a size where the
// program has room for a bool.
func TestOptionOfAnotherType(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		e, enable := bare(t, provider)
		for _, o := range boolOptions() {
			_, err := e.SizeOption(fabric.SizeOption(o))
			require.ErrorIs(t, err, fabric.ErrInvalid, o.String())
			require.ErrorIs(t, e.SetSizeOption(fabric.SizeOption(o), 1), fabric.ErrInvalid, o.String())
		}
		for _, o := range sizeOptions() {
			_, err := e.BoolOption(fabric.BoolOption(o))
			require.ErrorIs(t, err, fabric.ErrInvalid, o.String())
			require.ErrorIs(t, e.SetBoolOption(fabric.BoolOption(o), true), fabric.ErrInvalid, o.String())
		}
		for _, n := range []uint64{8, 1 << 20, 1 << 63} {
			require.ErrorIs(t, e.SetSizeOption(fabric.OptionEFARetries, n), fabric.ErrInvalid)
		}
		enable()
	})
}
