package fabric_test

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// asked asks for every option of a part of an endpoint: each is there or refused, and
// none crashes.
func asked(t *testing.T, read func(fabric.SizeOption) (uint64, error)) {
	t.Helper()
	for o := fabric.OptionMinMultiReceive; o <= fabric.OptionEFARetries; o++ {
		if _, err := read(o); err != nil {
			require.True(t, errors.Is(err, fabric.ErrNotSupported) || errors.Is(err, fabric.ErrInvalid), "%v: %v", o, err)
		}
	}
	_, err := read(4711)
	require.ErrorIs(t, err, fabric.ErrInvalid)
}

func askedOfContext(t *testing.T, c *fabric.Context) {
	t.Helper()
	asked(t, c.SizeOption)
	for o := fabric.OptionCUDAPermitted; o <= fabric.OptionEFAHomogeneousPeers; o++ {
		_, err := c.BoolOption(o)
		for _, err := range []error{err, c.SetBoolOption(o, false)} {
			if err != nil {
				require.True(t, errors.Is(err, fabric.ErrNotSupported) || errors.Is(err, fabric.ErrInvalid), "%v: %v", o, err)
			}
		}
	}
}

func TestOptionsOfPassiveEndpoints(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		p, err := x.fabric.OpenPassiveEndpoint(x.info)
		require.NoError(t, err)
		asked(t, p.SizeOption)
		require.NoError(t, p.Listen(x.events))
		asked(t, p.SizeOption)
		size, err := p.SizeOption(fabric.OptionConnectionData)
		require.NoError(t, err)
		require.NotZero(t, size)
		require.NoError(t, p.Close())
		_, err = p.SizeOption(fabric.OptionConnectionData)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// Contexts of scalable endpoints, and those that endpoints share.
func TestOptionsOfContexts(t *testing.T) {
	for _, provider := range append(testenv.Providers(), "net") {
		t.Run(provider, func(t *testing.T) {
			tried := optionsOfScalable(t, provider)
			for _, kind := range []fabric.EndpointType{fabric.ReliableDatagram, fabric.Connected} {
				tried = optionsOfShared(t, provider, kind) || tried
			}
			if !tried {
				testenv.Need(t, provider+" with contexts", fabric.ErrNotSupported)
			}
		})
	}
}

func contextInfo(provider string, kind fabric.EndpointType) *fabric.Info {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: provider, Endpoint: kind, Capabilities: fabric.Messages,
		MemoryMode: everyMemoryMode, Source: sourceOn(provider),
	})
	if err != nil {
		return nil
	}
	return infos[0]
}

func optionsOfShared(t *testing.T, provider string, kind fabric.EndpointType) bool {
	info := contextInfo(provider, kind)
	if info == nil {
		return false
	}
	_, d := partsOf(t, info)
	sharing, err := info.WithContexts(1, fabric.SharedContext)
	require.NoError(t, err)
	q := queueOf(t, d, 64)
	srx, err := d.OpenSharedReceive(sharing, q)
	if err != nil {
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		return false
	}
	askedOfContext(t, &srx.Context)
	require.NoError(t, srx.Close())
	_, err = srx.SizeOption(fabric.OptionMinMultiReceive)
	require.ErrorIs(t, err, net.ErrClosed)
	return true
}

func optionsOfScalable(t *testing.T, provider string) bool {
	info := contextInfo(provider, fabric.ReliableDatagram)
	if info == nil || info.Limits().EndpointReceiveContexts < 2 {
		return false
	}
	_, d := partsOf(t, info)
	several, err := info.WithContexts(1, 1)
	require.NoError(t, err)
	v, err := d.OpenAddressVectorConfig(fabric.AddressVectorConfig{ReceiveBits: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	e, err := d.OpenScalableEndpoint(several)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, e.Enable(v, nil))
	for i, open := range []func(int) (*fabric.Context, error){e.OpenSend, e.OpenReceive} {
		sends := i == 0
		q := queueOf(t, d, 64)
		c, err := open(0)
		require.NoError(t, err)
		askedOfContext(t, c)
		require.NoError(t, c.Enable(q))
		askedOfContext(t, c)
		if err := c.SetSizeOption(fabric.OptionMinMultiReceive, 123); err == nil {
			require.False(t, sends, "it says how much room a receive needs")
			value, err := c.SizeOption(fabric.OptionMinMultiReceive)
			require.NoError(t, err)
			require.EqualValues(t, 123, value)
		} else {
			require.ErrorIs(t, err, fabric.ErrNotSupported)
		}
		require.NoError(t, c.Close())
	}
	return true
}
