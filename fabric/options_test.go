package fabric_test

import (
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
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
		_, err := e.SizeOption(fabric.OptionMinMultiReceive)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		require.ErrorContains(t, err, "only once the endpoint is enabled")
		enable()
	}
	return e, enable
}

// Every option is either there, or ErrNotSupported: none crashes, whatever the
// provider.
func TestEveryOption(t *testing.T) {
	older := fabric.HeaderVersion().Major < 2
	each(t, func(t *testing.T, provider string) {
		e, _ := bare(t, provider)
		for option, since2 := range map[fabric.SizeOption]bool{
			fabric.OptionMinMultiReceive: false, fabric.OptionConnectionData: false,
			fabric.OptionBufferedMin: false, fabric.OptionBufferedLimit: false,
			fabric.OptionSendBuffer: false, fabric.OptionReceiveBuffer: false,
			fabric.OptionSendQueue: false, fabric.OptionReceiveQueue: false,
			fabric.OptionEFARetries: false,
			fabric.OptionMaxMessage: true, fabric.OptionMaxTagged: true, fabric.OptionMaxRemote: true,
			fabric.OptionMaxAtomic: true, fabric.OptionInjectMessage: true, fabric.OptionInjectTagged: true,
			fabric.OptionInjectRemote: true, fabric.OptionInjectAtomic: true,
		} {
			_, err := e.SizeOption(option)
			requireOption(t, option.String(), err, since2 && older)
			if since2 && older {
				require.ErrorIs(t, e.SetSizeOption(option, 1), fabric.ErrNotSupported)
			}
		}
		for _, option := range []fabric.BoolOption{
			fabric.OptionCUDAPermitted, fabric.OptionSharedMemoryPermitted,
			fabric.OptionEFAEmulatedRead, fabric.OptionEFAEmulatedWrite, fabric.OptionEFAEmulatedAtomics,
			fabric.OptionEFADeviceRDMA, fabric.OptionEFASendInOrder, fabric.OptionEFAWriteInOrder,
			fabric.OptionEFAHomogeneousPeers,
		} {
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
		require.NoError(t, e.Close())
		_, err = e.SizeOption(fabric.OptionMinMultiReceive)
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, e.SetSizeOption(fabric.OptionMinMultiReceive, 1), net.ErrClosed)
	})
}
