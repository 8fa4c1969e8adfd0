package fabric_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// A choice has all devices of its provider, each once, and ports open on those that
// a program names.
func TestChooseAmongDevices(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		choice, err := fabric.Choose(fabric.Preference{Providers: []string{provider}})
		require.NoError(t, err)
		require.Same(t, choice.Info, choice.Devices[0])
		var names []string
		for _, i := range choice.Devices {
			require.NotContains(t, names, i.Domain())
			require.NotEmpty(t, i.SourceName())
			names = append(names, i.Domain())
		}
		for n := range names {
			// Each may be the first.
			order := append(append([]string(nil), names[n:]...), names[:n]...)
			chosen, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Domains: order})
			require.NoError(t, err)
			require.Equal(t, order[0], chosen.Info.Domain())
			require.Len(t, chosen.Devices, len(order))
			for i, device := range chosen.Devices {
				require.Equal(t, order[i], device.Domain())
			}
			chosen, err = fabric.Choose(fabric.Preference{Providers: []string{provider}, Domains: order[:1]})
			require.NoError(t, err)
			require.Len(t, chosen.Devices, 1)
			port, err := fabric.OpenPort(chosen.Info, fabric.PortConfig{})
			require.NoError(t, err)
			require.Equal(t, order[0], port.Attributes().Domain)
			require.NoError(t, port.Close())
		}
		_, err = fabric.Choose(fabric.Preference{Providers: []string{provider}, Domains: []string{names[0], "nowhere0"}})
		require.ErrorIs(t, err, fabric.ErrNotFound)
		require.ErrorContains(t, err, `no device "nowhere0" here, only `+strings.Join(names, ", "))
	})
}

// An emulated machine has as many devices as it is told to have.
func TestEmulatedDevices(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		count, err := strconv.Atoi(os.Getenv("WEFT_EFA_DEVICES"))
		if err == nil && count < 2 {
			err = strconv.ErrRange
		}
		testenv.Need(t, "WEFT_EFA_DEVICES of more than one", err)
		choice, err := fabric.Choose(fabric.Preference{Providers: []string{"efa"}})
		require.NoError(t, err)
		require.Len(t, choice.Devices, count)
		for i, device := range choice.Devices {
			require.Equal(t, "rdmap"+strconv.Itoa(i)+"s0-rdm", device.Domain())
			require.Equal(t, "127.0.0."+strconv.Itoa(1+i), device.SourceName())
		}
	})
}

// A source is of the first device.
func TestChooseSourceOnDomain(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp"} {
		choice, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Source: "127.0.0.1", Domains: []string{"lo"}})
		testenv.Need(t, provider, err)
		require.Equal(t, "127.0.0.1", choice.Info.SourceName())
		require.Len(t, choice.Devices, 1)
		all, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Source: "127.0.0.1"})
		require.NoError(t, err)
		require.Equal(t, "lo", all.Devices[0].Domain())
		for _, device := range all.Devices[1:] {
			_, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Source: "127.0.0.1", Domains: []string{device.Domain(), "lo"}})
			require.ErrorContains(t, err, "cannot be bound to 127.0.0.1 on "+device.Domain())
		}
	}
}
